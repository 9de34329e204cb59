"""InitProducerId up to version 6. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple


class InitProducerIdRequest(NamedTuple):
    """The InitProducerId request."""

    transactional_id: str | None = None
    transaction_timeout_ms: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    enable2_pc: bool = False
    keep_prepared_txn: bool = False


class InitProducerIdResponse(NamedTuple):
    """The InitProducerId response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0
    ongoing_txn_producer_id: int = -1
    ongoing_txn_producer_epoch: int = -1


REQUEST: Final[dict[str, type[Any]]] = {
    "InitProducerIdRequest": InitProducerIdRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "InitProducerIdResponse": InitProducerIdResponse,
}

REQUEST_FIELDS: Final = """
InitProducerIdRequest 0-6 flexible 2+
 transactional_id string null
 transaction_timeout_ms int32
 producer_id int64 3+ = -1
 producer_epoch int16 3+ = -1
 enable2_pc bool 6+ = false
 keep_prepared_txn bool 6+ = false
"""
RESPONSE_FIELDS: Final = """
InitProducerIdResponse 0-6 flexible 2+
 throttle_time_ms int32
 error_code int16
 producer_id int64 = -1
 producer_epoch int16
 ongoing_txn_producer_id int64 6+ = -1
 ongoing_txn_producer_epoch int16 6+ = -1
"""
