"""Control records of a KRaft snapshot and of the quorum (KIP-630, KIP-853).

A control record's key is int16 version 0 and int16 type; its value is a flexible message that begins with its version:

    header    int16 version 0 | int64 append time of the last record contained | no tagged fields
    footer    int16 version 0 | no tagged fields

The records of the quorum's version and voters are carried on as they were found.
Those of a leader are in ``quorum_records``.
"""

from collections.abc import Sequence
from struct import Struct, error
from typing import Final

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.records import Record, build_batch

SNAPSHOT_HEADER: Final = 3
SNAPSHOT_FOOTER: Final = 4
KRAFT_VERSION: Final = 5
KRAFT_VOTERS: Final = 6

_KEY: Final = Struct(">hh")
_HEADER: Final = Struct(">hqB")
_FOOTER: Final = Struct(">hB")


def control_type(record: Record) -> int:
    """The type of a control record. Raises MalformedMessage."""
    try:
        kind: int = _KEY.unpack_from(record.key or b"")[1]
    except error as problem:
        raise MalformedMessage("a control record that is cut off") from problem
    return kind


def header_batch(last_contained_ms: int, now_ms: int, leader_epoch: int, others: Sequence[tuple[bytes, bytes]]) -> bytes:
    """The batch that begins a snapshot, at offset 0; ``others`` are the key and value of further control records."""
    header = Record(timestamp=now_ms, key=_KEY.pack(0, SNAPSHOT_HEADER), value=_HEADER.pack(0, last_contained_ms, 0))
    rest = [Record(timestamp=now_ms, key=key, value=value) for key, value in others]
    return build_batch([header, *rest], leader_epoch=leader_epoch, control=True)


def footer_batch(offset: int, now_ms: int, leader_epoch: int) -> bytes:
    """The batch that ends a snapshot."""
    footer = Record(timestamp=now_ms, key=_KEY.pack(0, SNAPSHOT_FOOTER), value=_FOOTER.pack(0, 0))
    return build_batch([footer], base_offset=offset, leader_epoch=leader_epoch, control=True)


def last_contained_ms(header: Record) -> int:
    """The append time of the last record that a snapshot contains, from its header record. Raises MalformedMessage."""
    if control_type(header) != SNAPSHOT_HEADER:
        raise MalformedMessage("a snapshot that does not begin with its header")
    try:
        time_ms: int = _HEADER.unpack_from(header.value or b"")[1]
    except error as problem:
        raise MalformedMessage("a snapshot header that is cut off") from problem
    return time_ms
