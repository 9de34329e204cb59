"""OffsetForLeaderEpoch up to version 4. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class OffsetForLeaderPartition(NamedTuple):
    """A struct of the OffsetForLeaderEpoch request."""

    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0


class OffsetForLeaderTopic(NamedTuple):
    """A struct of the OffsetForLeaderEpoch request."""

    topic: str = ""
    partitions: Sequence[OffsetForLeaderPartition] = ()


class OffsetForLeaderEpochRequest(NamedTuple):
    """The OffsetForLeaderEpoch request."""

    replica_id: int = -2
    topics: Sequence[OffsetForLeaderTopic] = ()


class EpochEndOffset(NamedTuple):
    """A struct of the OffsetForLeaderEpoch response."""

    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1


class OffsetForLeaderTopicResult(NamedTuple):
    """A struct of the OffsetForLeaderEpoch response."""

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

REQUEST_FIELDS: Final = """
OffsetForLeaderEpochRequest 2-4 flexible 4+
 replica_id int32 3+ = -2
 topics []OffsetForLeaderTopic
  topic string
  partitions []OffsetForLeaderPartition
   partition int32
   current_leader_epoch int32 = -1
   leader_epoch int32
"""
RESPONSE_FIELDS: Final = """
OffsetForLeaderEpochResponse 2-4 flexible 4+
 throttle_time_ms int32
 topics []OffsetForLeaderTopicResult
  topic string
  partitions []EpochEndOffset
   error_code int16
   partition int32
   leader_epoch int32 = -1
   end_offset int64 = -1
"""
