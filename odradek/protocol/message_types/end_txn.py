"""EndTxn up to version 5. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple


class EndTxnRequest(NamedTuple):
    """The EndTxn request."""

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    committed: bool = False


class EndTxnResponse(NamedTuple):
    """The EndTxn response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = -1


REQUEST: Final[dict[str, type[Any]]] = {
    "EndTxnRequest": EndTxnRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "EndTxnResponse": EndTxnResponse,
}
