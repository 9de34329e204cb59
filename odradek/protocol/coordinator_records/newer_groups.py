"""The records of consumer (KIP-848), share (KIP-932) and streams groups (KIP-1071) on ``__consumer_offsets``, keys 3 to 23.

    key      int16 version, which is the kind | string group id | string member id, or a regular expression, in some kinds
    value    int16 version, 0 | fields | tagged fields

All values are flexible. One table of fields (``KINDS``) decodes them into dictionaries under Kafka's names, for display. There
is no encoder, and a broker without such groups does not import this module. Topic ids are in Kafka's base64, bytes in base64.
Tagged fields that are not in the table are skipped; one that is absent from a record is absent from the dictionary.

Source: group-coordinator/src/main/resources/common/message of Apache Kafka 4.3 (9 and 18 were those of earlier releases).
"""

from base64 import b64encode, urlsafe_b64encode
from enum import Enum, auto
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from odradek.protocol.coordinator_records.fields import (
    Read,
    ensure_end,
    read_compact_bytes,
    read_int16,
    read_int32,
    read_int64,
    read_nullable_compact_string,
    read_nullable_string,
    read_tagged_fields,
    required,
    take,
)
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.varint import read_uvarint


class Plain(Enum):
    """A field with a single value."""

    INT8 = auto()
    UINT16 = auto()
    INT16 = auto()
    INT32 = auto()
    INT64 = auto()
    UUID = auto()
    STRING = auto()
    NULLABLE_STRING = auto()
    BYTES = auto()


class Struct(NamedTuple):
    """Fields in order, and tagged fields by tag: name and type."""

    fields: "dict[str, Type]"
    tagged: "dict[int, tuple[str, Type]]" = {}  # noqa: RUF012  never changed


class Nullable(NamedTuple):
    """A struct after a byte 1. For null that byte is -1, or 0 in a tagged field."""

    struct: Struct


class Array(NamedTuple):
    """Uvarint count + 1, or 0 for null, and the elements."""

    element: "Type"


Type: TypeAlias = Plain | Struct | Nullable | Array


class Kind(NamedTuple):
    """A kind of record: the names of the strings in its key, and its value."""

    name: str
    key_names: tuple[str, ...]
    value: Struct


class NewerRecord(NamedTuple):
    """A decoded record. ``value`` is None for a tombstone."""

    kind: str
    key: dict[str, str]
    value: dict[str, Any] | None
    value_version: int | None


VALUE_VERSION = 0
_EPOCHS: "dict[int, tuple[str, Type]]" = {0: ("assignment_epochs", Array(Plain.INT32))}
_INT32S, _INT16S, _STRINGS = Array(Plain.INT32), Array(Plain.INT16), Array(Plain.STRING)
_KEY_VALUES = Array(Struct({"key": Plain.STRING, "value": Plain.STRING}))
_PARTITIONS = Array(Struct({"topic_id": Plain.UUID, "partitions": _INT32S}))
_OWNED = Array(Struct({"topic_id": Plain.UUID, "partitions": _INT32S}, _EPOCHS))
_TASKS = Array(Struct({"subtopology_id": Plain.STRING, "partitions": _INT32S}))
_OWNED_TASKS = Array(Struct({"subtopology_id": Plain.STRING, "partitions": _INT32S}, _EPOCHS))
_NAMED_TOPICS = Array(Struct({"topic_id": Plain.UUID, "topic_name": Plain.STRING}))
_NAMED_PARTITIONS = Array(Struct({"topic_id": Plain.UUID, "topic_name": Plain.STRING, "partitions": _INT32S}))
_RACKS = Array(Struct({"partition": Plain.INT32, "racks": _STRINGS}))
_TOPIC_METADATA: "dict[str, Type]" = {
    "topic_id": Plain.UUID,
    "topic_name": Plain.STRING,
    "num_partitions": Plain.INT32,
    "partition_metadata": _RACKS,
}
_CLASSIC_MEMBER = Struct(
    {
        "session_timeout_ms": Plain.INT32,
        "supported_protocols": Array(Struct({"name": Plain.STRING, "metadata": Plain.BYTES})),
    }
)
_ENDPOINT = Struct({"host": Plain.STRING, "port": Plain.UINT16})
_TOPIC_INFO = Array(
    Struct(
        {
            "name": Plain.STRING,
            "partitions": Plain.INT32,
            "replication_factor": Plain.INT16,
            "topic_configs": _KEY_VALUES,
        }
    )
)
_COPARTITION = Array(
    Struct({"source_topics": _INT16S, "source_topic_regex": _INT16S, "repartition_source_topics": _INT16S}),
)
_SUBTOPOLOGY = Struct(
    {
        "subtopology_id": Plain.STRING,
        "source_topics": _STRINGS,
        "source_topic_regex": _STRINGS,
        "state_changelog_topics": _TOPIC_INFO,
        "repartition_sink_topics": _STRINGS,
        "repartition_source_topics": _TOPIC_INFO,
        "copartition_groups": _COPARTITION,
    }
)
_MEMBER_EPOCHS: "dict[str, Type]" = {"member_epoch": Plain.INT32, "previous_member_epoch": Plain.INT32, "state": Plain.INT8}
_CLIENT: "dict[str, Type]" = {"client_id": Plain.STRING, "client_host": Plain.STRING}
_GROUP, _MEMBER, _REGEX = ("group_id",), ("group_id", "member_id"), ("group_id", "regular_expression")
_EPOCH: "dict[str, Type]" = {"epoch": Plain.INT32}
_ASSIGNED = Struct({"assignment_epoch": Plain.INT32}, {0: ("assignment_timestamp", Plain.INT64)})

KINDS: dict[int, Kind] = {
    3: Kind("consumer_group_metadata", _GROUP, Struct(_EPOCH, {0: ("metadata_hash", Plain.INT64)})),
    4: Kind("consumer_group_partition_metadata", _GROUP, Struct({"topics": Array(Struct(_TOPIC_METADATA))})),
    5: Kind(
        "consumer_group_member_metadata",
        _MEMBER,
        Struct(
            {"instance_id": Plain.NULLABLE_STRING, "rack_id": Plain.NULLABLE_STRING}
            | _CLIENT
            | {
                "subscribed_topic_names": _STRINGS,
                "subscribed_topic_regex": Plain.NULLABLE_STRING,
                "rebalance_timeout_ms": Plain.INT32,
                "server_assignor": Plain.NULLABLE_STRING,
            },
            {0: ("classic_member_metadata", Nullable(_CLASSIC_MEMBER))},
        ),
    ),
    6: Kind("consumer_group_target_assignment_metadata", _GROUP, _ASSIGNED),
    7: Kind("consumer_group_target_assignment_member", _MEMBER, Struct({"topic_partitions": _PARTITIONS})),
    8: Kind(
        "consumer_group_current_member_assignment",
        _MEMBER,
        Struct(_MEMBER_EPOCHS | {"assigned_partitions": _OWNED, "partitions_pending_revocation": _OWNED}),
    ),
    10: Kind(
        "share_group_member_metadata",
        _MEMBER,
        Struct({"rack_id": Plain.NULLABLE_STRING} | _CLIENT | {"subscribed_topic_names": _STRINGS}),
    ),
    11: Kind("share_group_metadata", _GROUP, Struct(_EPOCH | {"metadata_hash": Plain.INT64})),
    12: Kind("share_group_target_assignment_metadata", _GROUP, _ASSIGNED),
    13: Kind("share_group_target_assignment_member", _MEMBER, Struct({"topic_partitions": _PARTITIONS})),
    14: Kind("share_group_current_member_assignment", _MEMBER, Struct(_MEMBER_EPOCHS | {"assigned_partitions": _PARTITIONS})),
    15: Kind(
        "share_group_state_partition_metadata",
        _GROUP,
        Struct(
            {
                "initializing_topics": _NAMED_PARTITIONS,
                "initialized_topics": _NAMED_PARTITIONS,
                "deleting_topics": _NAMED_TOPICS,
            }
        ),
    ),
    16: Kind(
        "consumer_group_regular_expression",
        _REGEX,
        Struct({"topics": _STRINGS, "version": Plain.INT64, "timestamp": Plain.INT64}),
    ),
    17: Kind(
        "streams_group_metadata",
        _GROUP,
        Struct(
            _EPOCH | {"metadata_hash": Plain.INT64},
            {0: ("validated_topology_epoch", Plain.INT32), 1: ("last_assignment_configs", _KEY_VALUES)},
        ),
    ),
    19: Kind(
        "streams_group_member_metadata",
        _MEMBER,
        Struct(
            {"instance_id": Plain.NULLABLE_STRING, "rack_id": Plain.NULLABLE_STRING}
            | _CLIENT
            | {
                "rebalance_timeout_ms": Plain.INT32,
                "topology_epoch": Plain.INT32,
                "process_id": Plain.STRING,
                "user_endpoint": Nullable(_ENDPOINT),
                "client_tags": _KEY_VALUES,
            }
        ),
    ),
    20: Kind("streams_group_target_assignment_metadata", _GROUP, _ASSIGNED),
    21: Kind(
        "streams_group_target_assignment_member",
        _MEMBER,
        Struct({"active_tasks": _TASKS, "standby_tasks": _TASKS, "warmup_tasks": _TASKS}),
    ),
    22: Kind(
        "streams_group_current_member_assignment",
        _MEMBER,
        Struct(
            _MEMBER_EPOCHS
            | {
                "active_tasks": _OWNED_TASKS,
                "standby_tasks": _OWNED_TASKS,
                "warmup_tasks": _OWNED_TASKS,
                "active_tasks_pending_revocation": _OWNED_TASKS,
                "standby_tasks_pending_revocation": _OWNED_TASKS,
                "warmup_tasks_pending_revocation": _OWNED_TASKS,
            }
        ),
    ),
    23: Kind("streams_group_topology", _GROUP, Struct(_EPOCH | {"subtopologies": Array(_SUBTOPOLOGY)})),
}
"""By the key's version."""


def _read_int8(data: bytes, position: int) -> tuple[int, int]:
    raw, end = take(data, position, 1)
    return int.from_bytes(raw, "big", signed=True), end


def _read_uint16(data: bytes, position: int) -> tuple[int, int]:
    raw, end = take(data, position, 2)
    return int.from_bytes(raw, "big"), end


def topic_id_text(raw: bytes) -> str:
    """A topic id as Kafka's tools print it."""
    return urlsafe_b64encode(raw).decode().rstrip("=")


def _read_uuid(data: bytes, position: int) -> tuple[str, int]:
    raw, end = take(data, position, 16)
    return topic_id_text(raw), end


def _read_string(data: bytes, position: int) -> tuple[str, int]:
    text, end = read_nullable_compact_string(data, position)
    return required(text), end


def _read_bytes(data: bytes, position: int) -> tuple[str, int]:
    raw, end = read_compact_bytes(data, position)
    return b64encode(raw).decode(), end


_READ_PLAIN: dict[Plain, Read[Any]] = {
    Plain.INT8: _read_int8,
    Plain.UINT16: _read_uint16,
    Plain.INT16: read_int16,
    Plain.INT32: read_int32,
    Plain.INT64: read_int64,
    Plain.UUID: _read_uuid,
    Plain.STRING: _read_string,
    Plain.NULLABLE_STRING: read_nullable_compact_string,
    Plain.BYTES: _read_bytes,
}


def _reader(kind: Type) -> Read[Any]:
    if isinstance(kind, Struct):
        return _struct_reader(kind)
    if isinstance(kind, Nullable):
        return _nullable_reader(_struct_reader(kind.struct))
    if isinstance(kind, Array):
        return _array_reader(_reader(kind.element))
    return _READ_PLAIN[kind]


def _array_reader(element: Read[Any]) -> Read[list[Any] | None]:
    def read(data: bytes, position: int) -> tuple[list[Any] | None, int]:
        count, position = read_uvarint(data, position)
        if count == 0:
            return None, position
        # An element takes one byte at least.
        if count - 1 > len(data) - position:
            raise MalformedMessage(f"an array of {count - 1} in {len(data) - position} bytes")
        found = []
        for _ in range(count - 1):
            one, position = element(data, position)
            found.append(one)
        return found, position

    return read


def _struct_reader(struct: Struct) -> Read[dict[str, Any]]:
    fields = {name: _reader(kind) for name, kind in struct.fields.items()}
    known = {tag: (name, _reader(kind)) for tag, (name, kind) in struct.tagged.items()}

    def read(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        for name, read_field in fields.items():
            found[name], position = read_field(data, position)
        by_tag, position = read_tagged_fields(data, position)
        for tag, raw in by_tag.items():
            if tag in known:
                name, read_field = known[tag]
                found[name], end = read_field(raw, 0)
                ensure_end(raw, end)
        return found, position

    return read


def _nullable_reader(read_struct: Read[dict[str, Any]]) -> Read[dict[str, Any] | None]:
    def read(data: bytes, position: int) -> tuple[dict[str, Any] | None, int]:
        presence, position = _read_int8(data, position)
        return (None, position) if presence < 1 else read_struct(data, position)

    return read


@cache
def _value_reader(key_version: int) -> Read[dict[str, Any]]:
    return _struct_reader(KINDS[key_version].value)


def decode_newer(key: bytes, value: bytes | None) -> NewerRecord:
    """A record whose key has a version beyond that of classic groups. Raises MalformedMessage, also for an unknown version."""
    key_version, position = read_int16(key, 0)
    if key_version not in KINDS:
        raise MalformedMessage(f"a key of version {key_version}, which Kafka 4.3 does not have")
    kind, names, _ = KINDS[key_version]
    named = {}
    for name in names:
        text, position = read_nullable_string(key, position)
        named[name] = required(text)
    ensure_end(key, position)
    if value is None:
        return NewerRecord(kind, named, None, None)
    value_version, position = read_int16(value, 0)
    if value_version != VALUE_VERSION:
        raise MalformedMessage(f"a value of version {value_version} where {kind} has {VALUE_VERSION}")
    fields, position = _value_reader(key_version)(value, position)
    ensure_end(value, position)
    return NewerRecord(kind, named, fields, value_version)
