"""AddPartitionsToTxn up to version 5. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class AddPartitionsToTxnTopic(NamedTuple):
    """Part of the AddPartitionsToTxn request."""

    name: str = ""
    partitions: Sequence[int] = ()


class AddPartitionsToTxnTransaction(NamedTuple):
    """Part of the AddPartitionsToTxn request."""

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    verify_only: bool = False
    topics: Sequence[AddPartitionsToTxnTopic] = ()


class AddPartitionsToTxnRequest(NamedTuple):
    """The AddPartitionsToTxn request."""

    transactions: Sequence[AddPartitionsToTxnTransaction] = ()


class AddPartitionsToTxnPartitionResult(NamedTuple):
    """Part of the AddPartitionsToTxn response."""

    partition_index: int = 0
    partition_error_code: int = 0


class AddPartitionsToTxnTopicResult(NamedTuple):
    """Part of the AddPartitionsToTxn response."""

    name: str = ""
    results_by_partition: Sequence[AddPartitionsToTxnPartitionResult] = ()


class AddPartitionsToTxnResult(NamedTuple):
    """Part of the AddPartitionsToTxn response."""

    transactional_id: str = ""
    topic_results: Sequence[AddPartitionsToTxnTopicResult] = ()


class AddPartitionsToTxnResponse(NamedTuple):
    """The AddPartitionsToTxn response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    results_by_transaction: Sequence[AddPartitionsToTxnResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "AddPartitionsToTxnTopic": AddPartitionsToTxnTopic,
    "AddPartitionsToTxnTransaction": AddPartitionsToTxnTransaction,
    "AddPartitionsToTxnRequest": AddPartitionsToTxnRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "AddPartitionsToTxnPartitionResult": AddPartitionsToTxnPartitionResult,
    "AddPartitionsToTxnTopicResult": AddPartitionsToTxnTopicResult,
    "AddPartitionsToTxnResult": AddPartitionsToTxnResult,
    "AddPartitionsToTxnResponse": AddPartitionsToTxnResponse,
}
