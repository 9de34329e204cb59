"""AlterPartition up to version 3. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class BrokerState(NamedTuple):
    """A struct of the AlterPartition request."""

    broker_id: int = 0
    broker_epoch: int = -1


class RequestPartitionData(NamedTuple):
    """A struct of the AlterPartition request."""

    partition_index: int = 0
    leader_epoch: int = 0
    new_isr_with_epochs: Sequence[BrokerState] = ()
    leader_recovery_state: int = 0
    partition_epoch: int = 0


class RequestTopicData(NamedTuple):
    """A struct of the AlterPartition request."""

    topic_id: UUID | None = None
    partitions: Sequence[RequestPartitionData] = ()


class AlterPartitionRequest(NamedTuple):
    """The AlterPartition request."""

    broker_id: int = 0
    broker_epoch: int = -1
    topics: Sequence[RequestTopicData] = ()


class PartitionData(NamedTuple):
    """A struct of the AlterPartition response."""

    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    isr: Sequence[int] = ()
    leader_recovery_state: int = 0
    partition_epoch: int = 0


class TopicData(NamedTuple):
    """A struct of the AlterPartition response."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionData] = ()


class AlterPartitionResponse(NamedTuple):
    """The AlterPartition response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    topics: Sequence[TopicData] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "BrokerState": BrokerState,
    "PartitionData": RequestPartitionData,
    "TopicData": RequestTopicData,
    "AlterPartitionRequest": AlterPartitionRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "PartitionData": PartitionData,
    "TopicData": TopicData,
    "AlterPartitionResponse": AlterPartitionResponse,
}

REQUEST_FIELDS: Final = """
AlterPartitionRequest 2-3 flexible 0+
 broker_id int32
 broker_epoch int64 = -1
 topics []TopicData
  topic_id uuid
  partitions []PartitionData
   partition_index int32
   leader_epoch int32
   new_isr []int32 -2
   new_isr_with_epochs []BrokerState 3+
    broker_id int32 3+
    broker_epoch int64 3+ = -1
   leader_recovery_state int8 = 0
   partition_epoch int32
"""
RESPONSE_FIELDS: Final = """
AlterPartitionResponse 2-3 flexible 0+
 throttle_time_ms int32
 error_code int16
 topics []TopicData
  topic_id uuid
  partitions []PartitionData
   partition_index int32
   error_code int16
   leader_id int32
   leader_epoch int32
   isr []int32
   leader_recovery_state int8 = 0
   partition_epoch int32
"""
