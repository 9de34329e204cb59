"""DeleteRecords up to version 2. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class DeleteRecordsPartition(NamedTuple):
    """Part of the DeleteRecords request."""

    partition_index: int = 0
    offset: int = 0


class DeleteRecordsTopic(NamedTuple):
    """Part of the DeleteRecords request."""

    name: str = ""
    partitions: Sequence[DeleteRecordsPartition] = ()


class DeleteRecordsRequest(NamedTuple):
    """The DeleteRecords request."""

    topics: Sequence[DeleteRecordsTopic] = ()
    timeout_ms: int = 0


class DeleteRecordsPartitionResult(NamedTuple):
    """Part of the DeleteRecords response."""

    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0


class DeleteRecordsTopicResult(NamedTuple):
    """Part of the DeleteRecords response."""

    name: str = ""
    partitions: Sequence[DeleteRecordsPartitionResult] = ()


class DeleteRecordsResponse(NamedTuple):
    """The DeleteRecords response."""

    throttle_time_ms: int = 0
    topics: Sequence[DeleteRecordsTopicResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "DeleteRecordsPartition": DeleteRecordsPartition,
    "DeleteRecordsTopic": DeleteRecordsTopic,
    "DeleteRecordsRequest": DeleteRecordsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "DeleteRecordsPartitionResult": DeleteRecordsPartitionResult,
    "DeleteRecordsTopicResult": DeleteRecordsTopicResult,
    "DeleteRecordsResponse": DeleteRecordsResponse,
}
