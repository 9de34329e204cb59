"""DeleteShareGroupState up to version 0. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class PartitionData(NamedTuple):
    """A struct of the DeleteShareGroupState request."""

    partition: int = 0


class DeleteStateData(NamedTuple):
    """A struct of the DeleteShareGroupState request."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionData] = ()


class DeleteShareGroupStateRequest(NamedTuple):
    """The DeleteShareGroupState request."""

    group_id: str = ""
    topics: Sequence[DeleteStateData] = ()


class PartitionResult(NamedTuple):
    """A struct of the DeleteShareGroupState response."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


class DeleteStateResult(NamedTuple):
    """A struct of the DeleteShareGroupState response."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionResult] = ()


class DeleteShareGroupStateResponse(NamedTuple):
    """The DeleteShareGroupState response."""

    results: Sequence[DeleteStateResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "PartitionData": PartitionData,
    "DeleteStateData": DeleteStateData,
    "DeleteShareGroupStateRequest": DeleteShareGroupStateRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "PartitionResult": PartitionResult,
    "DeleteStateResult": DeleteStateResult,
    "DeleteShareGroupStateResponse": DeleteShareGroupStateResponse,
}

REQUEST_FIELDS: Final = """
DeleteShareGroupStateRequest 0 flexible 0+
 group_id string
 topics []DeleteStateData
  topic_id uuid
  partitions []PartitionData
   partition int32
"""
RESPONSE_FIELDS: Final = """
DeleteShareGroupStateResponse 0 flexible 0+
 results []DeleteStateResult
  topic_id uuid
  partitions []PartitionResult
   partition int32
   error_code int16
   error_message string null = null
"""
