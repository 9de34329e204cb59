"""CreatePartitions up to version 3. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class CreatePartitionsAssignment(NamedTuple):
    """Part of the CreatePartitions request."""

    broker_ids: Sequence[int] = ()


class CreatePartitionsTopic(NamedTuple):
    """Part of the CreatePartitions request."""

    name: str = ""
    count: int = 0  # type: ignore[assignment]
    assignments: Sequence[CreatePartitionsAssignment] | None = ()


class CreatePartitionsRequest(NamedTuple):
    """The CreatePartitions request."""

    topics: Sequence[CreatePartitionsTopic] = ()
    timeout_ms: int = 0
    validate_only: bool = False


class CreatePartitionsTopicResult(NamedTuple):
    """Part of the CreatePartitions response."""

    name: str = ""
    error_code: int = 0
    error_message: str | None = None


class CreatePartitionsResponse(NamedTuple):
    """The CreatePartitions response."""

    throttle_time_ms: int = 0
    results: Sequence[CreatePartitionsTopicResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "CreatePartitionsAssignment": CreatePartitionsAssignment,
    "CreatePartitionsTopic": CreatePartitionsTopic,
    "CreatePartitionsRequest": CreatePartitionsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "CreatePartitionsTopicResult": CreatePartitionsTopicResult,
    "CreatePartitionsResponse": CreatePartitionsResponse,
}
