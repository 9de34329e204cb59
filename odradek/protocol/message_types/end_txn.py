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

REQUEST_FIELDS: Final = """
EndTxnRequest 0-5 flexible 3+
 transactional_id string
 producer_id int64
 producer_epoch int16
 committed bool
"""
RESPONSE_FIELDS: Final = """
EndTxnResponse 0-5 flexible 3+
 throttle_time_ms int32
 error_code int16
 producer_id int64 5+ = -1
 producer_epoch int16 5+ = -1
"""
