"""InitializeShareGroupState up to version 0. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class PartitionData(NamedTuple):
    """A struct of the InitializeShareGroupState request."""

    partition: int = 0
    state_epoch: int = 0
    start_offset: int = 0


class InitializeStateData(NamedTuple):
    """A struct of the InitializeShareGroupState request."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionData] = ()


class InitializeShareGroupStateRequest(NamedTuple):
    """The InitializeShareGroupState request."""

    group_id: str = ""
    topics: Sequence[InitializeStateData] = ()


class PartitionResult(NamedTuple):
    """A struct of the InitializeShareGroupState response."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


class InitializeStateResult(NamedTuple):
    """A struct of the InitializeShareGroupState response."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionResult] = ()


class InitializeShareGroupStateResponse(NamedTuple):
    """The InitializeShareGroupState response."""

    results: Sequence[InitializeStateResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "PartitionData": PartitionData,
    "InitializeStateData": InitializeStateData,
    "InitializeShareGroupStateRequest": InitializeShareGroupStateRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "PartitionResult": PartitionResult,
    "InitializeStateResult": InitializeStateResult,
    "InitializeShareGroupStateResponse": InitializeShareGroupStateResponse,
}

REQUEST_FIELDS: Final = """
InitializeShareGroupStateRequest 0 flexible 0+
 group_id string
 topics []InitializeStateData
  topic_id uuid
  partitions []PartitionData
   partition int32
   state_epoch int32
   start_offset int64
"""
RESPONSE_FIELDS: Final = """
InitializeShareGroupStateResponse 0 flexible 0+
 results []InitializeStateResult
  topic_id uuid
  partitions []PartitionResult
   partition int32
   error_code int16
   error_message string null = null
"""
