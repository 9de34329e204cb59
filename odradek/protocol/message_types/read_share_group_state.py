"""ReadShareGroupState up to version 0. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class PartitionData(NamedTuple):
    """A struct of the ReadShareGroupState request."""

    partition: int = 0
    leader_epoch: int = 0


class ReadStateData(NamedTuple):
    """A struct of the ReadShareGroupState request."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionData] = ()


class ReadShareGroupStateRequest(NamedTuple):
    """The ReadShareGroupState request."""

    group_id: str = ""
    topics: Sequence[ReadStateData] = ()


class StateBatch(NamedTuple):
    """A struct of the ReadShareGroupState response."""

    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


class PartitionResult(NamedTuple):
    """A struct of the ReadShareGroupState response."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    start_offset: int = 0
    state_batches: Sequence[StateBatch] = ()


class ReadStateResult(NamedTuple):
    """A struct of the ReadShareGroupState response."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionResult] = ()


class ReadShareGroupStateResponse(NamedTuple):
    """The ReadShareGroupState response."""

    results: Sequence[ReadStateResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "PartitionData": PartitionData,
    "ReadStateData": ReadStateData,
    "ReadShareGroupStateRequest": ReadShareGroupStateRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "StateBatch": StateBatch,
    "PartitionResult": PartitionResult,
    "ReadStateResult": ReadStateResult,
    "ReadShareGroupStateResponse": ReadShareGroupStateResponse,
}

REQUEST_FIELDS: Final = """
ReadShareGroupStateRequest 0 flexible 0+
 group_id string
 topics []ReadStateData
  topic_id uuid
  partitions []PartitionData
   partition int32
   leader_epoch int32
"""
RESPONSE_FIELDS: Final = """
ReadShareGroupStateResponse 0 flexible 0+
 results []ReadStateResult
  topic_id uuid
  partitions []PartitionResult
   partition int32
   error_code int16
   error_message string null = null
   state_epoch int32
   start_offset int64
   state_batches []StateBatch
    first_offset int64
    last_offset int64
    delivery_state int8
    delivery_count int16
"""
