"""DeleteTopics up to version 6. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class DeleteTopicState(NamedTuple):
    """Part of the DeleteTopics request."""

    name: str | None = None
    topic_id: UUID | None = None


class DeleteTopicsRequest(NamedTuple):
    """The DeleteTopics request."""

    topics: Sequence[DeleteTopicState] = ()
    timeout_ms: int = 0


class DeletableTopicResult(NamedTuple):
    """Part of the DeleteTopics response."""

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
