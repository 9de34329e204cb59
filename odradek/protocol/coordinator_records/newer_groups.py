"""The records of consumer (KIP-848), share (KIP-932) and streams groups (KIP-1071) on ``__consumer_offsets``, keys 3 to 23.

    key      int16 version, which is the kind | string group id | string member id, or a regular expression, where the kind has it
    value    int16 version, 0 | fields | tagged fields

Values are flexible throughout. They are read for people who look at them, by one table of fields, into dictionaries under Kafka's
names; nothing is written here, and a broker that has no such groups never imports this. A topic id is in Kafka's base64, bytes
are in base64 too. Tagged fields that the table does not have are passed over, and one that a record leaves out is left out.

Source: group-coordinator/src/main/resources/common/message of Apache Kafka 4.3 (9 and 18 were those of earlier releases).
"""

from base64 import b64encode, urlsafe_b64encode
from typing import Any, NamedTuple

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

_Fields = dict[str, Read[Any]]


class NewerRecord(NamedTuple):
    """A record: what kind, and what it says. ``value`` is None for a tombstone."""

    kind: str
    key: dict[str, str]
    value: dict[str, Any] | None
    value_version: int | None


def _read_int8(data: bytes, position: int) -> tuple[int, int]:
    raw, end = take(data, position, 1)
    return int.from_bytes(raw, "big", signed=True), end


def _read_uint16(data: bytes, position: int) -> tuple[int, int]:
    raw, end = take(data, position, 2)
    return int.from_bytes(raw, "big"), end


def _read_uuid(data: bytes, position: int) -> tuple[str, int]:
    raw, end = take(data, position, 16)
    return urlsafe_b64encode(raw).decode().rstrip("="), end


def _read_string(data: bytes, position: int) -> tuple[str, int]:
    text, end = read_nullable_compact_string(data, position)
    return required(text), end


def _read_bytes(data: bytes, position: int) -> tuple[str, int]:
    raw, end = read_compact_bytes(data, position)
    return b64encode(raw).decode(), end


def _array(element: Read[Any]) -> Read[list[Any] | None]:
    def read(data: bytes, position: int) -> tuple[list[Any] | None, int]:
        count, position = read_uvarint(data, position)
        if count == 0:
            return None, position
        # An element has one byte at least.
        if count - 1 > len(data) - position:
            raise MalformedMessage(f"an array of {count - 1} in {len(data) - position} bytes")
        found = []
        for _ in range(count - 1):
            one, position = element(data, position)
            found.append(one)
        return found, position

    return read


def _struct(fields: _Fields, tagged: dict[int, tuple[str, Read[Any]]] | None = None) -> Read[dict[str, Any]]:
    known = tagged or {}

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


def _nullable(read_struct: Read[dict[str, Any]]) -> Read[dict[str, Any] | None]:
    """A struct behind a byte that is 1; where it is null that is -1, or 0 if the field is a tagged one."""

    def read(data: bytes, position: int) -> tuple[dict[str, Any] | None, int]:
        presence, position = _read_int8(data, position)
        return (None, position) if presence < 1 else read_struct(data, position)

    return read


_STRINGS, _INT32S, _INT16S = _array(_read_string), _array(read_int32), _array(read_int16)
_NULLABLE_STRING = read_nullable_compact_string
_EPOCHS = {0: ("assignment_epochs", _INT32S)}
_KEY_VALUES = _array(_struct({"key": _read_string, "value": _read_string}))
_PARTITIONS = _array(_struct({"topic_id": _read_uuid, "partitions": _INT32S}))
_OWNED = _array(_struct({"topic_id": _read_uuid, "partitions": _INT32S}, _EPOCHS))
_TASKS = _array(_struct({"subtopology_id": _read_string, "partitions": _INT32S}))
_OWNED_TASKS = _array(_struct({"subtopology_id": _read_string, "partitions": _INT32S}, _EPOCHS))
_NAMED_TOPICS = _array(_struct({"topic_id": _read_uuid, "topic_name": _read_string}))
_NAMED_PARTITIONS = _array(_struct({"topic_id": _read_uuid, "topic_name": _read_string, "partitions": _INT32S}))
_RACKS = _array(_struct({"partition": read_int32, "racks": _STRINGS}))
_TOPIC_METADATA: _Fields = {
    "topic_id": _read_uuid,
    "topic_name": _read_string,
    "num_partitions": read_int32,
    "partition_metadata": _RACKS,
}
_CLASSIC_MEMBER = _struct(
    {
        "session_timeout_ms": read_int32,
        "supported_protocols": _array(_struct({"name": _read_string, "metadata": _read_bytes})),
    }
)
_ENDPOINT = _struct({"host": _read_string, "port": _read_uint16})
_TOPIC_INFO = _array(
    _struct(
        {
            "name": _read_string,
            "partitions": read_int32,
            "replication_factor": read_int16,
            "topic_configs": _KEY_VALUES,
        }
    )
)
_COPARTITION = _array(
    _struct({"source_topics": _INT16S, "source_topic_regex": _INT16S, "repartition_source_topics": _INT16S}),
)
_SUBTOPOLOGY = _struct(
    {
        "subtopology_id": _read_string,
        "source_topics": _STRINGS,
        "source_topic_regex": _STRINGS,
        "state_changelog_topics": _TOPIC_INFO,
        "repartition_sink_topics": _STRINGS,
        "repartition_source_topics": _TOPIC_INFO,
        "copartition_groups": _COPARTITION,
    }
)
_MEMBER_EPOCHS: _Fields = {"member_epoch": read_int32, "previous_member_epoch": read_int32, "state": _read_int8}
_CLIENT: _Fields = {"client_id": _read_string, "client_host": _read_string}
_GROUP, _MEMBER, _REGEX = ("group_id",), ("group_id", "member_id"), ("group_id", "regular_expression")
_EPOCH: _Fields = {"epoch": read_int32}
_ASSIGNED = _struct({"assignment_epoch": read_int32}, {0: ("assignment_timestamp", read_int64)})

# By the key's version: the kind, the strings of the key, the value.
_KINDS: dict[int, tuple[str, tuple[str, ...], Read[dict[str, Any]]]] = {
    3: ("consumer_group_metadata", _GROUP, _struct(_EPOCH, {0: ("metadata_hash", read_int64)})),
    4: ("consumer_group_partition_metadata", _GROUP, _struct({"topics": _array(_struct(_TOPIC_METADATA))})),
    5: (
        "consumer_group_member_metadata",
        _MEMBER,
        _struct(
            {"instance_id": _NULLABLE_STRING, "rack_id": _NULLABLE_STRING}
            | _CLIENT
            | {
                "subscribed_topic_names": _STRINGS,
                "subscribed_topic_regex": _NULLABLE_STRING,
                "rebalance_timeout_ms": read_int32,
                "server_assignor": _NULLABLE_STRING,
            },
            {0: ("classic_member_metadata", _nullable(_CLASSIC_MEMBER))},
        ),
    ),
    6: ("consumer_group_target_assignment_metadata", _GROUP, _ASSIGNED),
    7: ("consumer_group_target_assignment_member", _MEMBER, _struct({"topic_partitions": _PARTITIONS})),
    8: (
        "consumer_group_current_member_assignment",
        _MEMBER,
        _struct(_MEMBER_EPOCHS | {"assigned_partitions": _OWNED, "partitions_pending_revocation": _OWNED}),
    ),
    10: (
        "share_group_member_metadata",
        _MEMBER,
        _struct({"rack_id": _NULLABLE_STRING} | _CLIENT | {"subscribed_topic_names": _STRINGS}),
    ),
    11: ("share_group_metadata", _GROUP, _struct(_EPOCH | {"metadata_hash": read_int64})),
    12: ("share_group_target_assignment_metadata", _GROUP, _ASSIGNED),
    13: ("share_group_target_assignment_member", _MEMBER, _struct({"topic_partitions": _PARTITIONS})),
    14: ("share_group_current_member_assignment", _MEMBER, _struct(_MEMBER_EPOCHS | {"assigned_partitions": _PARTITIONS})),
    15: (
        "share_group_state_partition_metadata",
        _GROUP,
        _struct(
            {
                "initializing_topics": _NAMED_PARTITIONS,
                "initialized_topics": _NAMED_PARTITIONS,
                "deleting_topics": _NAMED_TOPICS,
            }
        ),
    ),
    16: (
        "consumer_group_regular_expression",
        _REGEX,
        _struct({"topics": _STRINGS, "version": read_int64, "timestamp": read_int64}),
    ),
    17: (
        "streams_group_metadata",
        _GROUP,
        _struct(
            _EPOCH | {"metadata_hash": read_int64},
            {0: ("validated_topology_epoch", read_int32), 1: ("last_assignment_configs", _KEY_VALUES)},
        ),
    ),
    19: (
        "streams_group_member_metadata",
        _MEMBER,
        _struct(
            {"instance_id": _NULLABLE_STRING, "rack_id": _NULLABLE_STRING}
            | _CLIENT
            | {
                "rebalance_timeout_ms": read_int32,
                "topology_epoch": read_int32,
                "process_id": _read_string,
                "user_endpoint": _nullable(_ENDPOINT),
                "client_tags": _KEY_VALUES,
            }
        ),
    ),
    20: ("streams_group_target_assignment_metadata", _GROUP, _ASSIGNED),
    21: (
        "streams_group_target_assignment_member",
        _MEMBER,
        _struct({"active_tasks": _TASKS, "standby_tasks": _TASKS, "warmup_tasks": _TASKS}),
    ),
    22: (
        "streams_group_current_member_assignment",
        _MEMBER,
        _struct(
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
    23: ("streams_group_topology", _GROUP, _struct(_EPOCH | {"subtopologies": _array(_SUBTOPOLOGY)})),
}


def decode_newer(key: bytes, value: bytes | None) -> NewerRecord:
    """The record whose key has a version beyond classic groups'. Raises MalformedMessage, also for a version not known."""
    key_version, position = read_int16(key, 0)
    if key_version not in _KINDS:
        raise MalformedMessage(f"a key of version {key_version}, which Kafka 4.3 does not have")
    kind, names, read_value = _KINDS[key_version]
    named = {}
    for name in names:
        text, position = read_nullable_string(key, position)
        named[name] = required(text)
    ensure_end(key, position)
    if value is None:
        return NewerRecord(kind, named, None, None)
    value_version, position = read_int16(value, 0)
    if value_version != 0:
        raise MalformedMessage(f"a value of version {value_version} where {kind} has 0")
    fields, position = read_value(value, position)
    ensure_end(value, position)
    return NewerRecord(kind, named, fields, value_version)
