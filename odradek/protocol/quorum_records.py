"""The control records with which a leader begins its epoch in KRaft's metadata log (KIP-595, KIP-853).

Their keys are int16 version 0 and int16 type, their values flexible messages. A quorum whose voters are configured has the first
record alone; one whose voters are told by the log (``kraft.version`` 1) has all, in one batch:

    leader change    int16 version 0 | int32 leader | voters | granting voters    compact arrays of: int32 id
    kraft.version    int16 version 0 | int16 level
    voters           int16 version 0 | compact array of: int32 id | uuid directory | endpoints | int16, int16 levels supported
                     endpoints: compact array of: compact strings name and host | uint16 port

Each struct ends with its tagged fields, of which there are none. The leader change has a version 1, with directories, that Kafka
4.3 does not read.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple
from uuid import UUID

from odradek.protocol.records import Record, build_batch
from odradek.protocol.snapshot_records import KRAFT_VERSION, KRAFT_VOTERS
from odradek.protocol.varint import uvarint

LEADER_CHANGE: Final = 2
_DYNAMIC: Final = 1
_NO_TAGS: Final = b"\0"
_SHORTS: Final = Struct(">hh")
_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")
_PORT: Final = Struct(">H")


class VoterEndpoint(NamedTuple):
    """Where a voter listens."""

    name: str
    host: str
    port: int


class Voter(NamedTuple):
    """A voter, by its node and the directory of its metadata log."""

    node_id: int
    directory_id: UUID
    endpoints: Sequence[VoterEndpoint]


def epoch_start_batch(offset: int, now_ms: int, leader_epoch: int, voter: Voter, *, is_dynamic: bool) -> bytes:
    """The batch that begins ``leader_epoch``, led by the only ``voter``; the log tells of it if the quorum ``is_dynamic``."""
    told = [(LEADER_CHANGE, _leader_change(voter.node_id))]
    return _batch(offset, now_ms, leader_epoch, told + _dynamic(voter) if is_dynamic else told)


def voters_batch(offset: int, now_ms: int, leader_epoch: int, voter: Voter) -> bytes:
    """The batch by which a quorum becomes dynamic: from here on the log tells of the only ``voter``."""
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
