"""The modules of records of consumer, share and streams groups, from Kafka's definitions; ``generate_messages`` writes them.

Names are Kafka's, but for structs that two kinds of records have in two forms, for ``group``, and for times: these have their
unit. Only tagged fields have defaults.
"""

from tools.kafka_definitions import Field, Message, coordinator_records
from tools.named_tuples import literal, named_tuple, python_type

# By module: the subject, the prefix of its records, and the docstring of each class of a value or a struct.
_DOCS: dict[str, tuple[str, str, dict[str, str]]] = {
    "consumer_groups": (
        "consumer groups (KIP-848)",
        "ConsumerGroup",
        {
            "ConsumerGroupMetadataValue": "The group's epoch, and the hash of its subscribed topics' metadata; 0 without any.",
            "ConsumerGroupPartitionMetadataValue": "The topics' metadata. Only Kafka before 4.1 wrote it; deleted when found.",
            "TopicMetadata": "A topic, and its partitions.",
            "PartitionMetadata": "A partition, and the racks of its replicas.",
            "ConsumerGroupMemberMetadataValue": """A member's own metadata. ``subscribed_topic_names`` are sorted.

    ``classic_member_metadata`` must be written as null: if the field is missing, Kafka takes the member for a classic one.
    """,
            "ClassicMemberMetadata": "Data of a member that speaks the classic protocol.",
            "ClassicProtocol": "A protocol of a member, and the member's metadata for it.",
            "ConsumerGroupTargetAssignmentMetadataValue": "The group epoch of the target assignment, and when it was computed.",
            "ConsumerGroupTargetAssignmentMemberValue": "The target assignment of a member.",
            "TargetPartitions": "Partitions of a topic.",
            "ConsumerGroupCurrentMemberAssignmentValue": "A member's epochs, its state by Kafka's number, and its partitions.",
            "OwnedPartitions": "Partitions of a topic, and the epoch of each assignment. Kafka before 4.3 writes none.",
            "ConsumerGroupRegularExpressionValue": "The matching topics, sorted; the version of the metadata, and the time.",
        },
    ),
    "share_groups": (
        "share groups (KIP-932)",
        "ShareGroup",
        {
            "ShareGroupMemberMetadataValue": "A member's own metadata. ``subscribed_topic_names`` are sorted.",
            "ShareGroupMetadataValue": "The group's epoch, and the hash of its subscribed topics' metadata; 0 without any.",
            "ShareGroupTargetAssignmentMetadataValue": "The group epoch of the target assignment, and when it was computed.",
            "ShareGroupTargetAssignmentMemberValue": "The target assignment of a member.",
            "SharePartitions": "Partitions of a topic.",
            "ShareGroupCurrentMemberAssignmentValue": "A member's epochs, its state by Kafka's number, and its partitions.",
            "ShareGroupStatePartitionMetadataValue": "The partitions, and deleted topics, by the life of their share state.",
            "TopicPartitionsInfo": "Partitions of a topic, with its name.",
            "TopicInfo": "A topic and its name.",
        },
    ),
    "streams_groups": (
        "streams groups (KIP-1071)",
        "StreamsGroup",
        {
            "StreamsGroupMetadataValue": """The group's epoch, and the hash of its topics' metadata; 0 without any.

    The other epochs are -1 if there is none. ``stored_description_topology_epoch`` is -2 if a plugin was interrupted.
    """,
            "LastAssignmentConfig": "A config of the last assignment.",
            "StreamsGroupMemberMetadataValue": "A member's own metadata. ``client_tags`` are sorted by key.",
            "Endpoint": "The address at which other instances of an application query this one.",
            "KeyValue": "A client tag.",
            "StreamsGroupTargetAssignmentMetadataValue": "The group epoch of the target assignment, and when it was computed.",
            "StreamsGroupTargetAssignmentMemberValue": "The target assignment of a member.",
            "TargetTaskIds": "Tasks of a subtopology.",
            "StreamsGroupCurrentMemberAssignmentValue": "A member's epochs, its state by Kafka's number, and its tasks.",
            "TaskIds": "Tasks of a subtopology. Active tasks have the epochs in which they were assigned.",
            "StreamsGroupTopologyValue": "The topology of the application.",
            "Subtopology": "A part of a topology that is connected by topics with the other parts only.",
            "TopicInfo": "An internal topic. 0 partitions or replicas leave the number to the coordinator, or to the broker.",
            "TopicConfig": "A config of an internal topic.",
            "CopartitionGroup": "Topics that need the same number of partitions, by their places in the subtopology's lists.",
        },
    ),
}
# Kafka's names by the record they stand in.
_STRUCTS = {
    ("ConsumerGroupTargetAssignmentMemberValue", "TopicPartition"): "TargetPartitions",
    ("ConsumerGroupCurrentMemberAssignmentValue", "TopicPartitions"): "OwnedPartitions",
    ("ShareGroupTargetAssignmentMemberValue", "TopicPartition"): "SharePartitions",
    ("ShareGroupCurrentMemberAssignmentValue", "TopicPartitions"): "SharePartitions",
    ("StreamsGroupTargetAssignmentMemberValue", "TaskIds"): "TargetTaskIds",
}


def group_record_modules() -> dict[str, str]:
    """The modules by name."""
    records = coordinator_records()
    return {
        f"{module}.py": _module(
            about, docs, prefix, {kind: both for kind, both in records.items() if both[0].name.startswith(prefix)}
        )
        for module, (about, prefix, docs) in _DOCS.items()
    }


def _module(about: str, docs: dict[str, str], prefix: str, kinds: dict[int, tuple[Message, Message]]) -> str:
    bodies: dict[str, str] = {}
    classes = []
    for kind, (key, value) in kinds.items():
        fields = ["group: str" if field.name == "group_id" else f"{field.name}: str" for field in key.fields]
        bodies[key.name] = named_tuple(key.name, key.name, f"Kind {kind}.", fields)
        structs = {value.name: value.name}
        _define(bodies, docs, structs, value.name, value.fields)
        pairs = [f'"{name}": {chosen}' for name, chosen in structs.items()]
        classes += (
            [f"    {kind}: {{{pairs[0]}}},"]
            if len(pairs) == 1
            else [f"    {kind}: {{", *(f"        {pair}," for pair in pairs), "    },"]
        )
    body = "\n\n\n".join(bodies.values())
    return "\n".join(
        [
            *(f'"""Records of {about} in ``__consumer_offsets``. Written by tools/generate_messages.py."""', ""),
            "from typing import Any, Final, NamedTuple, TypeAlias",
            *(["from uuid import UUID"] if "UUID" in body else []),
            *("", "", body, "", ""),
            *_alias(f"{prefix}Key", [key.name for key, _ in kinds.values()]),
            *_alias(f"{prefix}Value", [value.name for _, value in kinds.values()]),
            *("# By the key's version.", "KEYS: Final[dict[int, type[Any]]] = {"),
            *(f"    {kind}: {key.name}," for kind, (key, _) in kinds.items()),
            *("}", "# By the same: the classes of the value and its structs, by Kafka's names. The value's class comes first."),
            *("CLASSES: Final[dict[int, dict[str, type[Any]]]] = {", *classes, "}", ""),
        ]
    )


def _alias(name: str, of: list[str]) -> list[str]:
    return [f"{name}: TypeAlias = (", f"    {of[0]}", *(f"    | {each}" for each in of[1:]), ")"]


def _define(bodies: dict[str, str], docs: dict[str, str], structs: dict[str, str], name: str, fields: tuple[Field, ...]) -> None:
    """Add the class of ``name`` to ``bodies``, and before it those of its structs, to ``structs`` as well."""
    record = next(iter(structs))
    for field in fields:
        if field.fields and field.type not in structs:
            structs[field.type] = _STRUCTS.get((record, field.type), field.type)
            _define(bodies, docs, structs, field.type, field.fields)
    chosen = structs[name]
    lines = [f"{_in_milliseconds(field.name)}: {_declaration(field, structs)}" for field in fields]
    bodies.setdefault(chosen, named_tuple(chosen, chosen, docs[chosen], lines))


def _declaration(field: Field, structs: dict[str, str]) -> str:
    """The type of a field; its default, too, if it is tagged."""
    python = structs[field.type] if field.fields else python_type(field.type)
    python = f"tuple[{python}, ...]" if field.is_array else python
    python += " | None" if field.nullable is not None else ""
    if field.tag is None:
        return python
    if field.default is not None:
        return f"{python} = {literal(field.default)}"
    return f"{python} = {'()' if field.is_array else 'None'}"


def _in_milliseconds(name: str) -> str:
    """The field's name as ``fields.ValueCodec`` knows it."""
    return f"{name}_ms" if name.endswith(("timestamp", "timeout")) else name
