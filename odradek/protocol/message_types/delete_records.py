"""DeleteRecords up to version 2. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class DeleteRecordsPartition(NamedTuple):
    """A struct of the DeleteRecords request."""

    partition_index: int = 0
    offset: int = 0


class DeleteRecordsTopic(NamedTuple):
    """A struct of the DeleteRecords request."""

    name: str = ""
    partitions: Sequence[DeleteRecordsPartition] = ()


class DeleteRecordsRequest(NamedTuple):
    """The DeleteRecords request."""

    topics: Sequence[DeleteRecordsTopic] = ()
    timeout_ms: int = 0


class DeleteRecordsPartitionResult(NamedTuple):
    """A struct of the DeleteRecords response."""

    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0


class DeleteRecordsTopicResult(NamedTuple):
    """A struct of the DeleteRecords response."""

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

REQUEST_FIELDS: Final = """
DeleteRecordsRequest 0-2 flexible 2+
 topics []DeleteRecordsTopic
  name string
  partitions []DeleteRecordsPartition
   partition_index int32
   offset int64
 timeout_ms int32
"""
RESPONSE_FIELDS: Final = """
DeleteRecordsResponse 0-2 flexible 2+
 throttle_time_ms int32
 topics []DeleteRecordsTopicResult
  name string
  partitions []DeleteRecordsPartitionResult
   partition_index int32
   low_watermark int64
   error_code int16
"""
