"""The fuzzers' input: valid requests of every API and version served, and mutations of them."""

import io
import mmap
import random
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from kio.serial import entity_writer

from odradek.broker.api import SERVED
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.record_batch import HEADER_SIZE, batch_crc
from odradek.protocol.records import Record, build_batch
from tests.kio_schemas import load
from tests.protocol.random_messages import random_message
from tests.raw_client import encode_request, fetch_fields

_STATM = Path("/proc/self/statm")


def resident_kib() -> int:
    """Of this process."""
    return _own_pages(1) * mmap.PAGESIZE // 1024


def address_space_bytes() -> int:
    """Of this process."""
    return _own_pages(0) * mmap.PAGESIZE


def memory_kib(pid: int) -> int:
    """The proportional set size of a process."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(rollup.split("\nPss:", 1)[1].split(None, 1)[0])


def _own_pages(column: int) -> int:
    return int(_STATM.read_bytes().split()[column])


_EXTREMES = (0, 1, -1, -2, 127, 128, 2**15 - 1, -(2**15), 2**31 - 1, -(2**31), 2**24, 2**28, 2**63 - 1, -(2**63))
_LONG_UVARINTS = (b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x7f", b"\xff\xff\xff\x7f", b"\xff\xff\x7f", b"\x80" * 6 + b"\x01")


def served_versions() -> list[tuple[ApiKey, int]]:
    """Each API and version that the broker decodes."""
    return [(key, version) for key, served in SERVED.items() for version in range(served.min_version, served.max_version + 1)]


def valid_frames(rng: random.Random, each: int) -> list[bytes]:
    """``each`` frames, without the length in front, of every API and version served."""
    return [valid_frame(key, version, rng) for key, version in served_versions() for _ in range(each)]


def valid_frame(api_key: ApiKey, version: int, rng: random.Random) -> bytes:
    """Header and body of a request with random fields, encoded by kio's writers."""
    entity = load(api_key, version, "request")
    message = random_message(entity, rng)
    if api_key is ApiKey.PRODUCE:
        message = _with_batches(message, rng)
    body = io.BytesIO()
    entity_writer(entity)(body, message)
    client_id = rng.choice((None, "", "fuzz", "clïent"))
    encoded = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(encoded)
    header = struct.pack(">hhih", api_key, version, rng.randrange(2**31), length) + encoded
    return header + (b"\0" if entity.__flexible__ else b"") + body.getvalue()


def _with_batches(message: Any, rng: random.Random) -> Any:
    """The Produce request with record batches for its records."""
    return replace(
        message,
        topic_data=tuple(
            replace(
                topic,
                partition_data=tuple(replace(data, records=random_batch(rng)) for data in topic.partition_data),
            )
            for topic in message.topic_data
        ),
    )


def random_batch(rng: random.Random) -> bytes:
    """A valid batch of one to three records in any codec."""
    records = [
        Record(
            timestamp=rng.randrange(2**41),
            key=rng.choice((None, b"", b"key")),
            value=rng.choice((None, b"value" * rng.randrange(20), rng.randbytes(30))),
            headers=rng.choice(((), (("header", b"1"), ("é", None)))),
        )
        for _ in range(rng.randrange(1, 4))
    ]
    producer_id, base_sequence = rng.choice(((-1, -1), (7, 2**31 - 1)))
    return build_batch(records, compression=rng.randrange(5), producer_id=producer_id, base_sequence=base_sequence)


def frame_of_spoilt_batch(batches: list[bytes], rng: random.Random) -> bytes:
    """A Produce request that is valid except for its batch, whose CRC is correct half of the time."""
    batch = bytearray(mutated(rng.choice(batches), batches, rng))
    if rng.random() < 0.5 and len(batch) >= HEADER_SIZE:
        batch[17:21] = batch_crc(batch, 0, len(batch)).to_bytes(4, "big")
    head = struct.pack(">hhihhhiih1sii", ApiKey.PRODUCE, 3, 0, -1, -1, 1, 1_000, 1, 1, b"t", 1, 0)
    return head + len(batch).to_bytes(4, "big") + batch


def mutated(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """``data`` mutated in one to five places."""
    spoiled = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        rng.choice(_MUTATIONS)(spoiled, others, rng)
    return bytes(spoiled)


def _position(data: bytearray, rng: random.Random) -> int:
    # The front has the counts and lengths, and the fields that decide how the rest is read.
    limit = len(data) + 1 if rng.random() < 0.5 else min(len(data) + 1, 60)
    return rng.randrange(limit)


def _flip(data: bytearray, _others: list[bytes], rng: random.Random) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _overwrite_byte(data: bytearray, _others: list[bytes], rng: random.Random) -> None:
    if data:
        data[min(_position(data, rng), len(data) - 1)] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF, rng.randrange(256)))


def _truncate(data: bytearray, _others: list[bytes], rng: random.Random) -> None:
    del data[_position(data, rng) :]


def _cut(data: bytearray, _others: list[bytes], rng: random.Random) -> None:
    position = _position(data, rng)
    del data[position : position + rng.randrange(1, 9)]


def _insert(data: bytearray, _others: list[bytes], rng: random.Random) -> None:
    position = _position(data, rng)
    data[position:position] = rng.randbytes(rng.randrange(1, 9))


def _overwrite_number(data: bytearray, _others: list[bytes], rng: random.Random) -> None:
    position = _position(data, rng)
    size = rng.choice((2, 4, 4, 8))
    data[position : position + size] = (rng.choice(_EXTREMES) % (1 << 8 * size)).to_bytes(size, "big")


def _overwrite_uvarint(data: bytearray, _others: list[bytes], rng: random.Random) -> None:
    position = _position(data, rng)
    data[position : position + rng.choice((1, 5))] = rng.choice(_LONG_UVARINTS)


def _splice(data: bytearray, others: list[bytes], rng: random.Random) -> None:
    other = rng.choice(others)
    data[_position(data, rng) :] = other[rng.randrange(len(other) + 1) :]


def _repeat(data: bytearray, _others: list[bytes], rng: random.Random) -> None:
    start = _position(data, rng)
    data[start:start] = data[start : start + rng.randrange(1, 40)]


_MUTATIONS: tuple[Callable[[bytearray, list[bytes], random.Random], None], ...] = (
    _flip,
    _flip,
    _overwrite_byte,
    _overwrite_byte,
    _truncate,
    _cut,
    _insert,
    _overwrite_number,
    _overwrite_number,
    _overwrite_uvarint,
    _overwrite_uvarint,
    _splice,
    _repeat,
)

_GROUP = "g"


def aimed_frames(topic: str) -> list[bytes]:
    """Frames, without the length in front, that a broker which has ``topic`` answers with more than an error."""
    return [encode_request(key, version, **fields)[4:] for key, version, fields in _requests(topic) if key in SERVED]


def _requests(topic: str) -> list[tuple[ApiKey, int, dict[str, Any]]]:
    offset = {"partition_index": 0, "committed_offset": 3, "committed_metadata": "metadata"}
    member = {"group_id": _GROUP, "member_id": "m", "generation_id": 1}
    return [
        (ApiKey.FETCH, 12, fetch_fields(topic, 0)),
        (ApiKey.FETCH, 12, fetch_fields(topic, 0, max_wait_ms=20, min_bytes=1 << 20, session_epoch=0)),
        (ApiKey.LIST_OFFSETS, 7, {"topics": [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -3}]}]}),
        (ApiKey.METADATA, 9, {"topics": [{"name": topic}]}),
        (ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, {"topics": [{"topic": topic, "partitions": [{"partition": 0}]}]}),
        (ApiKey.DELETE_RECORDS, 2, {"topics": [{"name": topic, "partitions": [{"partition_index": 0, "offset": -1}]}]}),
        (ApiKey.CREATE_PARTITIONS, 3, {"topics": [{"name": topic, "count": 2}]}),
        (ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [{"resource_type": 2, "resource_name": topic}], "include_synonyms": True}),
        (ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": [{"name": topic}], "response_partition_limit": 5}),
        (ApiKey.FIND_COORDINATOR, 4, {"coordinator_keys": [_GROUP]}),
        (ApiKey.JOIN_GROUP, 5, _join_fields(member_id="")),
        (ApiKey.JOIN_GROUP, 7, _join_fields(member_id="", group_instance_id="i")),
        (ApiKey.SYNC_GROUP, 5, {**member, "assignments": [{"member_id": "m", "assignment": b"a"}]}),
        (ApiKey.HEARTBEAT, 4, member),
        (ApiKey.LEAVE_GROUP, 5, {"group_id": _GROUP, "members": [{"member_id": "", "group_instance_id": "i"}]}),
        (ApiKey.DESCRIBE_GROUPS, 5, {"groups": [_GROUP]}),
        (ApiKey.LIST_GROUPS, 4, {}),
        (ApiKey.DELETE_GROUPS, 2, {"groups_names": [_GROUP]}),
        (ApiKey.OFFSET_COMMIT, 8, {"group_id": "simple", "topics": [{"name": topic, "partitions": [offset, offset]}]}),
        (ApiKey.OFFSET_COMMIT, 3, {"group_id": _GROUP, "topics": [{"name": topic, "partitions": [offset]}]}),
        (ApiKey.OFFSET_FETCH, 8, {"groups": [{"group_id": "simple"}, {"group_id": _GROUP}], "require_stable": True}),
        (ApiKey.OFFSET_FETCH, 5, {"group_id": "simple", "topics": [{"name": topic, "partition_indexes": (0, 1)}]}),
        (ApiKey.OFFSET_DELETE, 0, {"group_id": "simple", "topics": [{"name": topic, "partitions": [{"partition_index": 0}]}]}),
    ]


def _join_fields(**fields: Any) -> dict[str, Any]:
    return {
        "group_id": _GROUP,
        "session_timeout_ms": 6000,
        "rebalance_timeout_ms": 20,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"}],
        **fields,
    }
