"""OffsetForLeaderEpoch up to version 4. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class OffsetForLeaderPartition(NamedTuple):
    """Part of the OffsetForLeaderEpoch request."""

    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0


class OffsetForLeaderTopic(NamedTuple):
    """Part of the OffsetForLeaderEpoch request."""

    topic: str = ""
    partitions: Sequence[OffsetForLeaderPartition] = ()


class OffsetForLeaderEpochRequest(NamedTuple):
    """The OffsetForLeaderEpoch request."""

    replica_id: int = -2
    topics: Sequence[OffsetForLeaderTopic] = ()


class EpochEndOffset(NamedTuple):
    """Part of the OffsetForLeaderEpoch response."""

    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1


class OffsetForLeaderTopicResult(NamedTuple):
    """Part of the OffsetForLeaderEpoch response."""

    topic: str = ""
    partitions: Sequence[EpochEndOffset] = ()


class OffsetForLeaderEpochResponse(NamedTuple):
    """The OffsetForLeaderEpoch response."""

    throttle_time_ms: int = 0
    topics: Sequence[OffsetForLeaderTopicResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "OffsetForLeaderPartition": OffsetForLeaderPartition,
    "OffsetForLeaderTopic": OffsetForLeaderTopic,
    "OffsetForLeaderEpochRequest": OffsetForLeaderEpochRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "EpochEndOffset": EpochEndOffset,
    "OffsetForLeaderTopicResult": OffsetForLeaderTopicResult,
    "OffsetForLeaderEpochResponse": OffsetForLeaderEpochResponse,
}
