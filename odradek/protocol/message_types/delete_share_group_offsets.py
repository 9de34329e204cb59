"""DeleteShareGroupOffsets up to version 0. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class DeleteShareGroupOffsetsRequestTopic(NamedTuple):
    """A struct of the DeleteShareGroupOffsets request."""

    topic_name: str = ""


class DeleteShareGroupOffsetsRequest(NamedTuple):
    """The DeleteShareGroupOffsets request."""

    group_id: str = ""
    topics: Sequence[DeleteShareGroupOffsetsRequestTopic] = ()


class DeleteShareGroupOffsetsResponseTopic(NamedTuple):
    """A struct of the DeleteShareGroupOffsets response."""

    topic_name: str = ""
    topic_id: UUID | None = None
    error_code: int = 0
    error_message: str | None = None


class DeleteShareGroupOffsetsResponse(NamedTuple):
    """The DeleteShareGroupOffsets response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: Sequence[DeleteShareGroupOffsetsResponseTopic] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "DeleteShareGroupOffsetsRequestTopic": DeleteShareGroupOffsetsRequestTopic,
    "DeleteShareGroupOffsetsRequest": DeleteShareGroupOffsetsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "DeleteShareGroupOffsetsResponseTopic": DeleteShareGroupOffsetsResponseTopic,
    "DeleteShareGroupOffsetsResponse": DeleteShareGroupOffsetsResponse,
}

REQUEST_FIELDS: Final = """
DeleteShareGroupOffsetsRequest 0 flexible 0+
 group_id string
 topics []DeleteShareGroupOffsetsRequestTopic
  topic_name string
"""
RESPONSE_FIELDS: Final = """
DeleteShareGroupOffsetsResponse 0 flexible 0+
 throttle_time_ms int32
 error_code int16
 error_message string null = null
 responses []DeleteShareGroupOffsetsResponseTopic
  topic_name string
  topic_id uuid
  error_code int16
  error_message string null = null
"""
