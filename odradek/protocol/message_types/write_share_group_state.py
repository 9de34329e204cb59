"""WriteShareGroupState up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class StateBatch(NamedTuple):
    """A struct of the WriteShareGroupState request."""

    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


class PartitionData(NamedTuple):
    """A struct of the WriteShareGroupState request."""

    partition: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: Sequence[StateBatch] = ()


class WriteStateData(NamedTuple):
    """A struct of the WriteShareGroupState request."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionData] = ()


class WriteShareGroupStateRequest(NamedTuple):
    """The WriteShareGroupState request."""

    group_id: str = ""
    topics: Sequence[WriteStateData] = ()


class PartitionResult(NamedTuple):
    """A struct of the WriteShareGroupState response."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


class WriteStateResult(NamedTuple):
    """A struct of the WriteShareGroupState response."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionResult] = ()


class WriteShareGroupStateResponse(NamedTuple):
    """The WriteShareGroupState response."""

    results: Sequence[WriteStateResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "StateBatch": StateBatch,
    "PartitionData": PartitionData,
    "WriteStateData": WriteStateData,
    "WriteShareGroupStateRequest": WriteShareGroupStateRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "PartitionResult": PartitionResult,
    "WriteStateResult": WriteStateResult,
    "WriteShareGroupStateResponse": WriteShareGroupStateResponse,
}

REQUEST_FIELDS: Final = """
WriteShareGroupStateRequest 0-1 flexible 0+
 group_id string
 topics []WriteStateData
  topic_id uuid
  partitions []PartitionData
   partition int32
   state_epoch int32
   leader_epoch int32
   start_offset int64
   delivery_complete_count int32 1+ = -1
   state_batches []StateBatch
    first_offset int64
    last_offset int64
    delivery_state int8
    delivery_count int16
"""
RESPONSE_FIELDS: Final = """
WriteShareGroupStateResponse 0-1 flexible 0+
 results []WriteStateResult
  topic_id uuid
  partitions []PartitionResult
   partition int32
   error_code int16
   error_message string null = null
"""
