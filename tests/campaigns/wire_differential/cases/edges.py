"""Slice ``edges``: the base request of each API and version, with one field at each of its edges."""

from collections.abc import Iterator
from dataclasses import replace
from math import inf, nan
from typing import Any
from uuid import UUID

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import FieldSpec
from tests.campaigns.wire_differential.cases import setup
from tests.campaigns.wire_differential.cases.bases import BASES
from tests.campaigns.wire_differential.cases.paths import Path, fields_of, mapped, replaced, value_at, versions
from tests.campaigns.wire_differential.script import Batch, Script, Step
from tests.campaigns.wire_differential.wire import Raw, is_flexible

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_LONG = 32_767
# For what a script's own names begin with.
_ROOM = 40
_MAKE_STATE = {
    *("group_id", "groups", "groups_names", "key", "coordinator_keys"),
    *("transactional_id", "v3_and_below_transactional_id", "transactional_ids"),
}
_NAMES = (setup.TOPIC, setup.GROUP, setup.SIMPLE_GROUP, setup.TRANSACTIONAL_ID)
_FLEXIBLE_PRODUCE = 9
# An UUID that stands for a directory or a topic of Kafka's own.
_RESERVED = UUID(int=1)
_UNKNOWN_ID = UUID(int=(1 << 127) + 99)
# What one of the brokers would really do, and take minutes or all memory for.
_TOO_MUCH = {(ApiKey.CREATE_PARTITIONS, "topics.count"): 10_000, (ApiKey.CREATE_TOPICS, "topics.num_partitions"): 10_000}
# Kafka takes seconds to fail at an unknown operation, and does not stop any more when it is unregistered.
_LEFT_OUT = {
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "config_operation"),
    (ApiKey.UNREGISTER_BROKER, "broker_id"),
    # Kafka's controller ends at an empty name of a listener.
    (ApiKey.ADD_RAFT_VOTER, "name"),
    # None is all users, those of other scripts as well.
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "users"),
    # Kafka asks for half a minute for the state of partitions that the group doesn't have.
    (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, "partitions"),
}
# Who may be asked about Kafka's own topic and not change it, nor tell how long it has become.
_OF_INTERNAL_TOPICS = {ApiKey.PRODUCE, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.METADATA, ApiKey.CREATE_TOPICS}

_BATCHES: tuple[tuple[str, Any], ...] = (
    *((f"codec {codec}", Batch(3, {"compression": codec})) for codec in range(1, 5)),
    ("codec 5", Batch(1, patch=((22, b"\x05"),))),
    ("unused attributes", Batch(1, patch=((21, b"\x7f\x80"),))),
    ("log append time", Batch(1, {"timestamp_type": 1})),
    ("a wrong crc", Batch(1, patch=((17, b"\0\0\0\0"),), sealed=False)),
    *((f"magic {magic}", Batch(1, patch=((16, bytes([magic])),))) for magic in (0, 1, 3, 255)),
    ("another base offset", Batch(1, {"base_offset": 7})),
    ("a leader epoch", Batch(1, {"leader_epoch": 5})),
    *(
        (f"a record count of {count}", Batch(3, patch=((57, count.to_bytes(4, "big", signed=True)),)))
        for count in (-1, 0, 2, 4, 2**31 - 1)
    ),
    *(
        (f"a last offset delta of {last}", Batch(3, patch=((23, last.to_bytes(4, "big", signed=True)),)))
        for last in (-1, 0, 1, 3, 2**31 - 1)
    ),
    *(
        (f"a max timestamp of {most}", Batch(3, patch=((35, most.to_bytes(8, "big", signed=True)),)))
        for most in (-1, 5, 2**63 - 1)
    ),
    *(
        (f"a base timestamp of {base}", Batch(3, patch=((27, base.to_bytes(8, "big", signed=True)),)))
        for base in (-1, -5, 2**63 - 1)
    ),
    *(
        (f"a length of {size}", Batch(1, patch=((8, size.to_bytes(4, "big", signed=True)),)))
        for size in (-1, 0, 13, 48, 49, 2**31 - 1)
    ),
    ("one record of three", Batch(3, patch=((57, b"\0\0\0\1"), (23, b"\0\0\0\0")))),
    ("five records of three", Batch(3, patch=((57, b"\0\0\0\5"), (23, b"\0\0\0\4")))),
    ("a control batch", Batch(1, {"control": True})),
    (
        "a transactional batch",
        Batch(1, {"transactional": True, "producer_id": 5_000_000, "producer_epoch": 0, "base_sequence": 0}),
    ),
    ("an unknown producer", Batch(1, {"producer_id": 5_000_001, "producer_epoch": 0, "base_sequence": 0})),
    ("an unknown producer in mid-sequence", Batch(1, {"producer_id": 5_000_002, "producer_epoch": 0, "base_sequence": 9})),
    ("a producer without epoch", Batch(1, {"producer_id": 5_000_003, "producer_epoch": -1, "base_sequence": 0})),
    ("a producer without sequence", Batch(1, {"producer_id": 5_000_004, "producer_epoch": 0, "base_sequence": -1})),
    ("an epoch without producer", Batch(1, {"producer_id": -1, "producer_epoch": 0, "base_sequence": 0})),
)


def scripts() -> Iterator[Script]:
    """One for each API, version and field at the top of the request."""
    for api_key, version in versions():
        base = BASES[api_key]
        steps: list[Step] = [] if base.each_time else list(base.before)
        for path, spec in fields_of(api_key, version):
            for label, value in _edges(api_key, version, path, spec, base.fields):
                fields = replaced(base.fields, path, value)
                own = {name: f"{name}{len(steps)}" for name in _NAMES} if base.each_time else {}
                steps += [replace(step, fields=mapped(step.fields, own, {})) for step in base.before if own]
                steps.append(_step(f"{'.'.join(path)}={label}", api_key, version, mapped(fields, own, {})))
        # A version without fields has no edges, and its steps those of the next: both would use the same names.
        if any(step.label for step in steps):
            # While an answer is owed, each step is followed by a wait for it.
            yield Script(f"edges/{api_key.name}/v{version}", tuple(sorted(steps, key=lambda step: step.parks)))


def _step(label: str, api_key: ApiKey, version: int, fields: dict[str, Any]) -> Step:
    # They want no answer, make Kafka fail, wait for the other member, or ask Kafka for nothing or for something twice.
    unanswered = {
        (ApiKey.PRODUCE, "acks=0"),
        (ApiKey.PRODUCE, "topic_data.partition_data.records=null"),
        (ApiKey.JOIN_GROUP, "member_id=''"),
        (ApiKey.ADD_PARTITIONS_TO_TXN, "transactions=[]"),
        (ApiKey.WRITE_TXN_MARKERS, "markers.topics=twice"),
        (ApiKey.WRITE_TXN_MARKERS, "markers.topics.partition_indexes=twice"),
        (ApiKey.ALTER_CONFIGS, "resources=twice"),
    }
    return Step(label, api_key, version, fields, parks=(api_key, label) in unanswered)


def _edges(api_key: ApiKey, version: int, path: Path, spec: FieldSpec, base: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    now = value_at(base, path)
    if spec.is_array and (api_key, path[-1]) in _LEFT_OUT:
        return
    if spec.is_array:
        yield "[]", []
        if spec.nullable:
            yield "null", None
        if now:
            yield "twice", [now[0], now[0]]
        if spec.layout is None:
            for label, value in _values(api_key, version, path, spec):
                yield f"[{label}]", [value]
        return
    if spec.nullable and spec.kafka_type != "uuid":
        yield "null", None
    if spec.layout is not None:
        yield "{}", {inner.name: _filled(inner) for inner in spec.layout.fields}
        return
    yield from _values(api_key, version, path, spec)


def _filled(spec: FieldSpec) -> Any:
    if spec.is_array:
        return []
    return setup.TOPIC if spec.kafka_type == "string" else 0 if spec.layout is None else {}


def _values(api_key: ApiKey, version: int, path: Path, spec: FieldSpec) -> Iterator[tuple[str, Any]]:
    kind = spec.kafka_type
    if (api_key, path[-1]) in _LEFT_OUT:
        return
    if kind in _BITS:
        top = 1 << _BITS[kind] - 1
        most = _TOO_MUCH.get((api_key, ".".join(path)), top)
        # How long a transaction has been going on is not told in a few milliseconds.
        small = (0,) if path == ("duration_filter",) else (0, 1, 2, 3, 7, 16, 32)
        for number in (-top, -6, -3, -2, -1, *small, top - 1):
            if number <= most:
                yield str(number), number
    elif kind == "string":
        yield "''", ""
        yield "unknown", "@unknown"
        if api_key in _OF_INTERNAL_TOPICS:
            yield "internal", "__consumer_offsets"
        # What stays behind under a name of all scripts, one would find of another.
        own = "@" if path[-1] in _MAKE_STATE else ""
        for text in ("null", " ", ".", "..", "a b", "é", "a" * 249, "a" * 250):
            yield text if len(text) < _BITS["int64"] else f"a*{len(text)}", own + text
        if is_flexible(api_key, version):
            yield "a*40000", "a" * 40_000
        yield "nul", own + "a\0b"
        yield "long", own + "b" * (_LONG - _ROOM * len(own))
    elif kind == "float64":
        for real in (-1.0, -0.0, 0.0, 0.5, 1e-9, 1.0000001, 2.0**31, 2.0**63, 1e300, inf, nan):
            yield str(real), real
    elif kind == "uint16":
        yield from (("0", 0), ("65535", 65_535))
    elif kind == "bool":
        yield from (("false", False), ("true", True))
    elif kind == "uuid":
        yield from (("zero", None), ("reserved", _RESERVED), ("unknown", _UNKNOWN_ID))
    elif kind == "records":
        yield from _BATCHES
        yield from (("none", b""), ("junk", b"junk" * 4), ("long junk", b"junk" * 40), ("a cut batch", Raw(_cut(version))))
    else:
        assert kind == "bytes", kind
        yield from (("none", b""), ("junk", b"\xff\x00junk"), ("long", b"x" * 5_000))


def _cut(version: int) -> bytes:
    """Records of 61 bytes, announced as such, whose batch says that it has more."""
    size = b"\x3e" if version >= _FLEXIBLE_PRODUCE else (61).to_bytes(4, "big")
    return size + bytes(8) + (200).to_bytes(4, "big") + bytes(4) + b"\x02" + bytes(44)
