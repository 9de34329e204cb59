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
    """Part of the ListTransactions response."""

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
