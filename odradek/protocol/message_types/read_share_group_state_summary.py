"""ReadShareGroupStateSummary up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class PartitionData(NamedTuple):
    """A struct of the ReadShareGroupStateSummary request."""

    partition: int = 0
    leader_epoch: int = 0


class ReadStateSummaryData(NamedTuple):
    """A struct of the ReadShareGroupStateSummary request."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionData] = ()


class ReadShareGroupStateSummaryRequest(NamedTuple):
    """The ReadShareGroupStateSummary request."""

    group_id: str = ""
    topics: Sequence[ReadStateSummaryData] = ()


class PartitionResult(NamedTuple):
    """A struct of the ReadShareGroupStateSummary response."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1


class ReadStateSummaryResult(NamedTuple):
    """A struct of the ReadShareGroupStateSummary response."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionResult] = ()


class ReadShareGroupStateSummaryResponse(NamedTuple):
    """The ReadShareGroupStateSummary response."""

    results: Sequence[ReadStateSummaryResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "PartitionData": PartitionData,
    "ReadStateSummaryData": ReadStateSummaryData,
    "ReadShareGroupStateSummaryRequest": ReadShareGroupStateSummaryRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "PartitionResult": PartitionResult,
    "ReadStateSummaryResult": ReadStateSummaryResult,
    "ReadShareGroupStateSummaryResponse": ReadShareGroupStateSummaryResponse,
}

REQUEST_FIELDS: Final = """
ReadShareGroupStateSummaryRequest 0-1 flexible 0+
 group_id string
 topics []ReadStateSummaryData
  topic_id uuid
  partitions []PartitionData
   partition int32
   leader_epoch int32
"""
RESPONSE_FIELDS: Final = """
ReadShareGroupStateSummaryResponse 0-1 flexible 0+
 results []ReadStateSummaryResult
  topic_id uuid
  partitions []PartitionResult
   partition int32
   error_code int16
   error_message string null = null
   state_epoch int32
   leader_epoch int32
   start_offset int64
   delivery_complete_count int32 1+ = -1
"""
