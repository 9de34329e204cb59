"""AlterPartition up to version 3. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class BrokerState(NamedTuple):
    """Part of the AlterPartition request."""

    broker_id: int = 0
    broker_epoch: int = -1


class RequestPartitionData(NamedTuple):
    """Part of the AlterPartition request."""

    partition_index: int = 0
    leader_epoch: int = 0
    new_isr_with_epochs: Sequence[BrokerState] = ()
    leader_recovery_state: int = 0
    partition_epoch: int = 0


class RequestTopicData(NamedTuple):
    """Part of the AlterPartition request."""

    topic_id: UUID | None = None
    partitions: Sequence[RequestPartitionData] = ()


class AlterPartitionRequest(NamedTuple):
    """The AlterPartition request."""

    broker_id: int = 0
    broker_epoch: int = -1
    topics: Sequence[RequestTopicData] = ()


class PartitionData(NamedTuple):
    """Part of the AlterPartition response."""

    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    isr: Sequence[int] = ()
    leader_recovery_state: int = 0
    partition_epoch: int = 0


class TopicData(NamedTuple):
    """Part of the AlterPartition response."""

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
