"""Control records of KRaft's metadata log: for the start of an epoch, and for snapshots (KIP-595, KIP-630, KIP-853).

Their keys are int16 version 0 and int16 type, their values flexible messages that begin with their version. A quorum with
configured voters begins an epoch with the first record only. A quorum whose log lists the voters (``kraft.version`` 1) begins it
with the first three, in one batch:

    leader change    int16 version 0 | int32 leader | voters | granting voters    compact arrays of: int32 id
    kraft.version    int16 version 0 | int16 level
    voters           int16 version 0 | compact array of: int32 id | uuid directory | endpoints | int16, int16 levels supported
                     endpoints: compact array of: compact strings name and host | uint16 port
    snapshot header  int16 version 0 | int64 append time of the last record contained
    snapshot footer  int16 version 0

Each struct ends with an empty list of tagged fields. The leader change has a version 1, with directories, which Kafka 4.4 does
not read. A snapshot keeps the records of the quorum's version and voters unchanged.
"""

from collections.abc import Sequence
from struct import Struct, error
from typing import Final, NamedTuple
from uuid import UUID

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.records import Record, build_batch
from odradek.protocol.varint import uvarint

LEADER_CHANGE: Final = 2
SNAPSHOT_HEADER: Final = 3
SNAPSHOT_FOOTER: Final = 4
KRAFT_VERSION: Final = 5
KRAFT_VOTERS: Final = 6

_HEADER: Final = Struct(">hqB")
_FOOTER: Final = Struct(">hB")
_DYNAMIC: Final = 1
_NO_TAGS: Final = b"\0"
_SHORTS: Final = Struct(">hh")
_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")
_PORT: Final = Struct(">H")


class VoterEndpoint(NamedTuple):
    """The address of a voter's listener."""

    name: str
    host: str
    port: int


class Voter(NamedTuple):
    """A voter, identified by its node and the directory of its metadata log."""

    node_id: int
    directory_id: UUID
    endpoints: Sequence[VoterEndpoint]


def epoch_start_batch(offset: int, now_ms: int, leader_epoch: int, voter: Voter, *, is_dynamic: bool) -> bytes:
    """Build the batch that begins ``leader_epoch``, led by the only ``voter``, which is listed if the quorum ``is_dynamic``."""
    told = [(LEADER_CHANGE, _leader_change(voter.node_id))]
    return _batch(offset, now_ms, leader_epoch, told + _dynamic(voter) if is_dynamic else told)


def voters_batch(offset: int, now_ms: int, leader_epoch: int, voter: Voter) -> bytes:
    """Build the batch that makes a quorum dynamic: from here on, the log lists the only ``voter``."""
    return _batch(offset, now_ms, leader_epoch, _dynamic(voter))


def _batch(offset: int, now_ms: int, leader_epoch: int, told: Sequence[tuple[int, bytes]]) -> bytes:
    records = [Record(timestamp=now_ms, key=_SHORTS.pack(0, kind), value=value) for kind, value in told]
    return build_batch(records, base_offset=offset, leader_epoch=leader_epoch, control=True)


def _dynamic(voter: Voter) -> list[tuple[int, bytes]]:
    return [(KRAFT_VERSION, _SHORTS.pack(0, _DYNAMIC) + _NO_TAGS), (KRAFT_VOTERS, _voters(voter))]


def _leader_change(leader_id: int) -> bytes:
    elected = _array([_INT.pack(leader_id) + _NO_TAGS])
    return _SHORT.pack(0) + _INT.pack(leader_id) + elected + elected + _NO_TAGS


def _voters(voter: Voter) -> bytes:
    endpoints = [_string(name) + _string(host) + _PORT.pack(port) + _NO_TAGS for name, host, port in voter.endpoints]
    supported = _SHORTS.pack(0, _DYNAMIC) + _NO_TAGS
    one = _INT.pack(voter.node_id) + voter.directory_id.bytes + _array(endpoints) + supported + _NO_TAGS
    return _SHORT.pack(0) + _array([one]) + _NO_TAGS


def _array(items: Sequence[bytes]) -> bytes:
    return uvarint(len(items) + 1) + b"".join(items)


def _string(text: str) -> bytes:
    data = text.encode()
    return uvarint(len(data) + 1) + data


def control_type(record: Record) -> int:
    """Return the type of a control record. Raises MalformedMessage."""
    try:
        kind: int = _SHORTS.unpack_from(record.key or b"")[1]
    except error as problem:
        raise MalformedMessage("a control record ends early") from problem
    return kind


def header_batch(last_contained_ms: int, now_ms: int, leader_epoch: int, others: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Build the batch that begins a snapshot, at offset 0. ``others`` are key and value of further control records."""
    header = Record(timestamp=now_ms, key=_SHORTS.pack(0, SNAPSHOT_HEADER), value=_HEADER.pack(0, last_contained_ms, 0))
    rest = [Record(timestamp=now_ms, key=key, value=value) for key, value in others]
    return build_batch([header, *rest], leader_epoch=leader_epoch, control=True)


def footer_batch(offset: int, now_ms: int, leader_epoch: int) -> bytes:
    """Build the batch that ends a snapshot."""
    footer = Record(timestamp=now_ms, key=_SHORTS.pack(0, SNAPSHOT_FOOTER), value=_FOOTER.pack(0, 0))
    return build_batch([footer], base_offset=offset, leader_epoch=leader_epoch, control=True)


def last_contained_ms(header: Record) -> int:
    """Return the append time of the last record in a snapshot, from its header record. Raises MalformedMessage."""
    if control_type(header) != SNAPSHOT_HEADER:
        raise MalformedMessage("the snapshot does not begin with its header")
    try:
        time_ms: int = _HEADER.unpack_from(header.value or b"")[1]
    except error as problem:
        raise MalformedMessage("the snapshot header ends early") from problem
    return time_ms
