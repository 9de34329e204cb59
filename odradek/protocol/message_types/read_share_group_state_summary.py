"""ReadShareGroupStateSummary up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class PartitionData(NamedTuple):
    """Part of the ReadShareGroupStateSummary request."""

    partition: int = 0
    leader_epoch: int = 0


class ReadStateSummaryData(NamedTuple):
    """Part of the ReadShareGroupStateSummary request."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionData] = ()


class ReadShareGroupStateSummaryRequest(NamedTuple):
    """The ReadShareGroupStateSummary request."""

    group_id: str = ""
    topics: Sequence[ReadStateSummaryData] = ()


class PartitionResult(NamedTuple):
    """Part of the ReadShareGroupStateSummary response."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1


class ReadStateSummaryResult(NamedTuple):
    """Part of the ReadShareGroupStateSummary response."""

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
