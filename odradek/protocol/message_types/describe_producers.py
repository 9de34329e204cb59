"""DescribeProducers up to version 0. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class TopicRequest(NamedTuple):
    """A struct of the DescribeProducers request."""

    name: str = ""
    partition_indexes: Sequence[int] = ()


class DescribeProducersRequest(NamedTuple):
    """The DescribeProducers request."""

    topics: Sequence[TopicRequest] = ()


class ProducerState(NamedTuple):
    """A struct of the DescribeProducers response."""

    producer_id: int = 0
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1


class PartitionResponse(NamedTuple):
    """A struct of the DescribeProducers response."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    active_producers: Sequence[ProducerState] = ()


class TopicResponse(NamedTuple):
    """A struct of the DescribeProducers response."""

    name: str = ""
    partitions: Sequence[PartitionResponse] = ()


class DescribeProducersResponse(NamedTuple):
    """The DescribeProducers response."""

    throttle_time_ms: int = 0
    topics: Sequence[TopicResponse] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "TopicRequest": TopicRequest,
    "DescribeProducersRequest": DescribeProducersRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "ProducerState": ProducerState,
    "PartitionResponse": PartitionResponse,
    "TopicResponse": TopicResponse,
    "DescribeProducersResponse": DescribeProducersResponse,
}

REQUEST_FIELDS: Final = """
DescribeProducersRequest 0 flexible 0+
 topics []TopicRequest
  name string
  partition_indexes []int32
"""
RESPONSE_FIELDS: Final = """
DescribeProducersResponse 0 flexible 0+
 throttle_time_ms int32
 topics []TopicResponse
  name string
  partitions []PartitionResponse
   partition_index int32
   error_code int16
   error_message string null = null
   active_producers []ProducerState
    producer_id int64
    producer_epoch int32
    last_sequence int32 = -1
    last_timestamp int64 = -1
    coordinator_epoch int32
    current_txn_start_offset int64 = -1
"""
