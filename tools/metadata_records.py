"""The modules of odradek/protocol/metadata_records, from Kafka's definitions; ``generate_messages`` writes them.

A class has the fields of the newest version, with Kafka's defaults. Ids are never None: the zero id stands for an unassigned
directory.
"""

from collections.abc import Callable
from dataclasses import replace

from tools.kafka_definitions import Field, Message, metadata_records
from tools.named_tuples import literal, named_tuple, python_type

# By module: the subject of its docstring, and the docstring of each class.
_DOCS: dict[str, tuple[str, dict[str, str]]] = {
    "cluster": (
        "the cluster: configs, features, blocks of producer ids",
        {
            "ConfigRecord": """A config of a resource is set, or removed if ``value`` is None.

    ``resource_type`` is Kafka's ConfigResource.Type: 2 topic, 4 broker (an empty ``resource_name`` is the cluster-wide
    default).
    """,
            "FeatureLevelRecord": "A feature is finalized at a level; 0 removes it.",
            "ProducerIdsRecord": "A block of producer ids was handed to a broker; ``next_producer_id`` is the first id after it.",
        },
    ),
    "log_control": (
        "the metadata log itself: idle records, transactions of records",
        {
            "NoOpRecord": "No change: a Kafka controller appends one from time to time, so that the log's high watermark moves.",
            "ZkMigrationStateRecord": "The progress of a migration from ZooKeeper (KIP-866).",
            "BeginTransactionRecord": "The records up to an EndTransactionRecord take effect together, or not at all (KIP-868).",
            "EndTransactionRecord": "The records of the open metadata transaction take effect.",
            "AbortTransactionRecord": "The records of the open metadata transaction never take effect.",
        },
    ),
    "nodes": (
        "brokers and controllers: their registration (KIP-631, KIP-919)",
        {
            "RegisterBrokerRecord": "A broker has registered: a new incarnation of it, with a new epoch.",
            "UnregisterBrokerRecord": "A broker is no longer a member of the cluster.",
            "FenceBrokerRecord": "A broker is fenced: it leads no partition. Written by Kafka before 3.3.",
            "UnfenceBrokerRecord": "A broker is unfenced: it may lead partitions. Written by Kafka before 3.3.",
            "BrokerRegistrationChangeRecord": """A registration changes.

    ``fenced``: 1 fences, -1 unfences, 0 means no change; ``in_controlled_shutdown``: 1 sets it. Empty ``log_dirs`` and null
    ``cordoned_log_dirs`` mean no change.
    """,
            "RegisterControllerRecord": "A controller has registered.",
            "UnregisterControllerRecord": "A controller is no longer registered.",
            "NodeEndpoint": "The address of a node's listener.",
            "NodeFeature": "The levels of a feature that a node supports.",
        },
    ),
    "partition_changes": (
        "changes of partitions: leader, replicas, directories",
        {
            "PartitionChangeRecord": """A partition changes. What is null, or has its default, stays the same.

    Each change raises the partition epoch by one. A change with a leader raises the leader epoch, too.
    """,
            "ClearElrRecord": "The eligible leader replicas of a topic are cleared, or of all if the name is empty (KIP-966).",
        },
    ),
    "security": (
        "users: ACLs, quotas, credentials and tokens",
        {
            "AccessControlEntryRecord": "An ACL: an operation is allowed or denied.",
            "RemoveAccessControlEntryRecord": "An ACL is removed.",
            "ClientQuotaRecord": "A quota of an entity is set or removed.",
            "QuotaEntity": "A part of a quota's entity; a name of None is the default of its type.",
            "UserScramCredentialRecord": "A user's SCRAM credential is set.",
            "RemoveUserScramCredentialRecord": "A user's SCRAM credential is removed.",
            "DelegationTokenRecord": "A delegation token is created or renewed.",
            "RemoveDelegationTokenRecord": "A delegation token is removed.",
        },
    ),
    "topics": (
        "topics and their partitions",
        {
            "TopicRecord": "A topic is created; its partitions follow in records of the same batch.",
            "PartitionRecord": "A partition: its replicas (broker ids), leader, epochs, and the directory id of each replica.",
            "RemoveTopicRecord": "A topic is removed, with its partitions and its configs.",
        },
    ),
}
_STRUCTS = {
    "BrokerEndpoint": "NodeEndpoint",
    "BrokerFeature": "NodeFeature",
    "ControllerEndpoint": "NodeEndpoint",
    "ControllerFeature": "NodeFeature",
    "EntityData": "QuotaEntity",
}
_ZEROS = {"string": '""', "bytes": 'b""', "bool": "False", "uuid": "ZERO_ID", "float64": "0.0"}


Table = Callable[[Message], str]


def record_modules(table: Table) -> dict[str, str]:
    """The modules by name. ``table`` makes a message's table of fields."""
    records = {message.name: (kind, message) for kind, message in metadata_records().items()}
    return {f"{module}.py": _module(about, docs, records, table) for module, (about, docs) in _DOCS.items()}


def _module(about: str, docs: dict[str, str], records: dict[str, tuple[int, Message]], table: Table) -> str:
    bodies: dict[str, str] = {}
    tables = []
    for name in docs:
        if name in records:
            kind, message = records[name]
            fields = tuple(map(_renamed, message.fields))
            _define(bodies, docs, name, fields)
            tables.append(f'    {kind}: """\n{table(replace(message, fields=fields))}\n""",')
    body = "\n\n\n".join(bodies.values())
    imports = ["from typing import Any, Final, NamedTuple"]
    if "UUID" in body:
        imports.append("from uuid import UUID")
    needed = {"return shown(": "messages import shown", "ZERO_ID": "metadata_records.base import ZERO_ID"}
    own = [f"from odradek.protocol.{line}" for word, line in needed.items() if word in body]
    imports += ["", *own] if own else []
    classes = [f'    "{name}": {name},' for name in bodies]
    return "\n".join(
        [
            *(f'"""Metadata records of {about}. Written by tools/generate_messages.py."""', "", *imports, "", "", body, "", ""),
            *("CLASSES: Final[dict[str, type[Any]]] = {", *classes, "}"),
            *("FIELDS: Final[dict[int, str]] = {", *tables, "}", ""),
        ]
    )


def _renamed(field: Field) -> Field:
    return replace(field, type=_STRUCTS.get(field.type, field.type), fields=tuple(map(_renamed, field.fields)))


def _define(bodies: dict[str, str], docs: dict[str, str], name: str, fields: tuple[Field, ...]) -> None:
    """Add a class, and before it those of its structs."""
    for field in fields:
        if field.fields and field.type not in bodies:
            _define(bodies, docs, field.type, field.fields)
    bodies[name] = named_tuple(name, name, docs[name], [f"{field.name}: {_declaration(field)}" for field in fields])


def _declaration(field: Field) -> str:
    """The type and default of a field."""
    python = field.type if field.fields else python_type(field.type)
    python = f"tuple[{python}, ...]" if field.is_array else python
    default = "()" if field.is_array else _ZEROS.get(field.type, "0")
    if field.default is not None:
        default = literal(field.default)
    elif field.nullable is not None:
        default = "None"
    return f"{python} | None = {default}" if field.nullable is not None else f"{python} = {default}"
