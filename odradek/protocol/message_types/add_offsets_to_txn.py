"""AddOffsetsToTxn up to version 4. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple


class AddOffsetsToTxnRequest(NamedTuple):
    """The AddOffsetsToTxn request."""

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""


class AddOffsetsToTxnResponse(NamedTuple):
    """The AddOffsetsToTxn response."""

    throttle_time_ms: int = 0
    error_code: int = 0


REQUEST: Final[dict[str, type[Any]]] = {
    "AddOffsetsToTxnRequest": AddOffsetsToTxnRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "AddOffsetsToTxnResponse": AddOffsetsToTxnResponse,
}

REQUEST_FIELDS: Final = """
AddOffsetsToTxnRequest 0-4 flexible 3+
 transactional_id string
 producer_id int64
 producer_epoch int16
 group_id string
"""
RESPONSE_FIELDS: Final = """
AddOffsetsToTxnResponse 0-4 flexible 3+
 throttle_time_ms int32
 error_code int16
"""
