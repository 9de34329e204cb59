"""DescribeTransactions up to version 0. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class DescribeTransactionsRequest(NamedTuple):
    """The DescribeTransactions request."""

    transactional_ids: Sequence[str] = ()


class TopicData(NamedTuple):
    """A struct of the DescribeTransactions response."""

    topic: str = ""
    partitions: Sequence[int] = ()


class TransactionState(NamedTuple):
    """A struct of the DescribeTransactions response."""

    error_code: int = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: Sequence[TopicData] = ()


class DescribeTransactionsResponse(NamedTuple):
    """The DescribeTransactions response."""

    throttle_time_ms: int = 0
    transaction_states: Sequence[TransactionState] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "DescribeTransactionsRequest": DescribeTransactionsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "TopicData": TopicData,
    "TransactionState": TransactionState,
    "DescribeTransactionsResponse": DescribeTransactionsResponse,
}

REQUEST_FIELDS: Final = """
DescribeTransactionsRequest 0 flexible 0+
 transactional_ids []string
"""
RESPONSE_FIELDS: Final = """
DescribeTransactionsResponse 0 flexible 0+
 throttle_time_ms int32
 transaction_states []TransactionState
  error_code int16
  transactional_id string
  transaction_state string
  transaction_timeout_ms int32
  transaction_start_time_ms int64
  producer_id int64
  producer_epoch int16
  topics []TopicData
   topic string
   partitions []int32
"""
