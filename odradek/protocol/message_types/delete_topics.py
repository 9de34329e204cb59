"""DeleteTopics up to version 6. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class DeleteTopicState(NamedTuple):
    """A struct of the DeleteTopics request."""

    name: str | None = None
    topic_id: UUID | None = None


class DeleteTopicsRequest(NamedTuple):
    """The DeleteTopics request."""

    topics: Sequence[DeleteTopicState] = ()
    timeout_ms: int = 0


class DeletableTopicResult(NamedTuple):
    """A struct of the DeleteTopics response."""

    name: str | None = None
    topic_id: UUID | None = None
    error_code: int = 0
    error_message: str | None = None


class DeleteTopicsResponse(NamedTuple):
    """The DeleteTopics response."""

    throttle_time_ms: int = 0
    responses: Sequence[DeletableTopicResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "DeleteTopicState": DeleteTopicState,
    "DeleteTopicsRequest": DeleteTopicsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "DeletableTopicResult": DeletableTopicResult,
    "DeleteTopicsResponse": DeleteTopicsResponse,
}

REQUEST_FIELDS: Final = """
DeleteTopicsRequest 1-6 flexible 4+
 topics []DeleteTopicState 6+
  name string 6+ null 6+ = null
  topic_id uuid 6+
 topic_names []string -5
 timeout_ms int32
"""
RESPONSE_FIELDS: Final = """
DeleteTopicsResponse 1-6 flexible 4+
 throttle_time_ms int32
 responses []DeletableTopicResult
  name string null 6+
  topic_id uuid 6+
  error_code int16
  error_message string 5+ null 5+ = null
"""
