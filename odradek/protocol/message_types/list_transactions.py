"""ListTransactions up to version 2. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class ListTransactionsRequest(NamedTuple):
    """The ListTransactions request."""

    state_filters: Sequence[str] = ()
    producer_id_filters: Sequence[int] = ()
    duration_filter: int = -1
    transactional_id_pattern: str | None = None


class TransactionState(NamedTuple):
    """A struct of the ListTransactions response."""

    transactional_id: str = ""
    producer_id: int = 0
    transaction_state: str = ""


class ListTransactionsResponse(NamedTuple):
    """The ListTransactions response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_state_filters: Sequence[str] = ()
    transaction_states: Sequence[TransactionState] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "ListTransactionsRequest": ListTransactionsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "TransactionState": TransactionState,
    "ListTransactionsResponse": ListTransactionsResponse,
}

REQUEST_FIELDS: Final = """
ListTransactionsRequest 0-2 flexible 0+
 state_filters []string
 producer_id_filters []int64
 duration_filter int64 1+ = -1
 transactional_id_pattern string 2+ null 2+ = null
"""
RESPONSE_FIELDS: Final = """
ListTransactionsResponse 0-2 flexible 0+
 throttle_time_ms int32
 error_code int16
 unknown_state_filters []string
 transaction_states []TransactionState
  transactional_id string
  producer_id int64
  transaction_state string
"""
