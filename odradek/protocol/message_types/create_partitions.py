"""CreatePartitions up to version 3. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class CreatePartitionsAssignment(NamedTuple):
    """A struct of the CreatePartitions request."""

    broker_ids: Sequence[int] = ()


class CreatePartitionsTopic(NamedTuple):
    """A struct of the CreatePartitions request."""

    name: str = ""
    count: int = 0  # type: ignore[assignment]
    assignments: Sequence[CreatePartitionsAssignment] | None = ()


class CreatePartitionsRequest(NamedTuple):
    """The CreatePartitions request."""

    topics: Sequence[CreatePartitionsTopic] = ()
    timeout_ms: int = 0
    validate_only: bool = False


class CreatePartitionsTopicResult(NamedTuple):
    """A struct of the CreatePartitions response."""

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

REQUEST_FIELDS: Final = """
CreatePartitionsRequest 0-3 flexible 2+
 topics []CreatePartitionsTopic
  name string
  count int32
  assignments []CreatePartitionsAssignment null
   broker_ids []int32
 timeout_ms int32
 validate_only bool
"""
RESPONSE_FIELDS: Final = """
CreatePartitionsResponse 0-3 flexible 2+
 throttle_time_ms int32
 results []CreatePartitionsTopicResult
  name string
  error_code int16
  error_message string null = null
"""
