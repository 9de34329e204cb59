"""WriteTxnMarkers up to version 2. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class WritableTxnMarkerTopic(NamedTuple):
    """A struct of the WriteTxnMarkers request."""

    name: str = ""
    partition_indexes: Sequence[int] = ()


class WritableTxnMarker(NamedTuple):
    """A struct of the WriteTxnMarkers request."""

    producer_id: int = 0
    producer_epoch: int = 0
    transaction_result: bool = False
    topics: Sequence[WritableTxnMarkerTopic] = ()
    coordinator_epoch: int = 0
    transaction_version: int = 0


class WriteTxnMarkersRequest(NamedTuple):
    """The WriteTxnMarkers request."""

    markers: Sequence[WritableTxnMarker] = ()


class WritableTxnMarkerPartitionResult(NamedTuple):
    """A struct of the WriteTxnMarkers response."""

    partition_index: int = 0
    error_code: int = 0


class WritableTxnMarkerTopicResult(NamedTuple):
    """A struct of the WriteTxnMarkers response."""

    name: str = ""
    partitions: Sequence[WritableTxnMarkerPartitionResult] = ()


class WritableTxnMarkerResult(NamedTuple):
    """A struct of the WriteTxnMarkers response."""

    producer_id: int = 0
    topics: Sequence[WritableTxnMarkerTopicResult] = ()


class WriteTxnMarkersResponse(NamedTuple):
    """The WriteTxnMarkers response."""

    markers: Sequence[WritableTxnMarkerResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "WritableTxnMarkerTopic": WritableTxnMarkerTopic,
    "WritableTxnMarker": WritableTxnMarker,
    "WriteTxnMarkersRequest": WriteTxnMarkersRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "WritableTxnMarkerPartitionResult": WritableTxnMarkerPartitionResult,
    "WritableTxnMarkerTopicResult": WritableTxnMarkerTopicResult,
    "WritableTxnMarkerResult": WritableTxnMarkerResult,
    "WriteTxnMarkersResponse": WriteTxnMarkersResponse,
}

REQUEST_FIELDS: Final = """
WriteTxnMarkersRequest 1-2 flexible 0+
 markers []WritableTxnMarker
  producer_id int64
  producer_epoch int16
  transaction_result bool
  topics []WritableTxnMarkerTopic
   name string
   partition_indexes []int32
  coordinator_epoch int32
  transaction_version int8 2+ = 0
"""
RESPONSE_FIELDS: Final = """
WriteTxnMarkersResponse 1-2 flexible 0+
 markers []WritableTxnMarkerResult
  producer_id int64
  topics []WritableTxnMarkerTopicResult
   name string
   partitions []WritableTxnMarkerPartitionResult
    partition_index int32
    error_code int16
"""
