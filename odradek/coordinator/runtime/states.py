"""The life of a shard, as a table."""

from enum import Enum
from typing import Final

from odradek.protocol.errors import ErrorCode, KafkaError


class ShardState(Enum):
    """FAILED: its log cannot be opened or read. CLOSED: another broker leads the partition, or another object has the shard."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


# The states that may follow each. A shard is loaded anew by a new object: nothing leads back from FAILED or CLOSED.
TRANSITIONS: Final = {
    ShardState.LOADING: {ShardState.ACTIVE, ShardState.FAILED, ShardState.CLOSED},
    ShardState.ACTIVE: {ShardState.FAILED, ShardState.CLOSED},
    ShardState.FAILED: {ShardState.CLOSED},
    ShardState.CLOSED: set(),
}


def ensure_transition(old: ShardState, new: ShardState) -> None:
    """Raise RuntimeError for a transition that is not in the table."""
    if new not in TRANSITIONS[old]:
        raise RuntimeError(f"a shard cannot go from {old.value} to {new.value}")


def unavailable(state: ShardState) -> KafkaError:
    """Return the error for an operation on a shard in ``state``, which is not ACTIVE."""
    if state is ShardState.LOADING:
        return KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the coordinator is loading")
    return not_coordinator()


def not_coordinator() -> KafkaError:
    """Return the error for an id that is not, or no longer, coordinated here."""
    return KafkaError(ErrorCode.NOT_COORDINATOR, "this broker is not the coordinator")


# The log's errors, as errors that a coordinator's client understands (Kafka: CoordinatorOperationExceptionHelper).
_TRANSLATED: Final = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def operation_error(error: Exception) -> KafkaError:
    """Return the error that answers an operation when ``error`` ended it or its append."""
    if not isinstance(error, KafkaError):
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
    code = _TRANSLATED.get(error.code)
    return error if code is None else KafkaError(code, error.reason)
