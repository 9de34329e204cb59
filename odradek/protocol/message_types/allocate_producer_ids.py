"""AllocateProducerIds up to version 0. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple


class AllocateProducerIdsRequest(NamedTuple):
    """The AllocateProducerIds request."""

    broker_id: int = 0
    broker_epoch: int = -1


class AllocateProducerIdsResponse(NamedTuple):
    """The AllocateProducerIds response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id_start: int = 0
    producer_id_len: int = 0


REQUEST: Final[dict[str, type[Any]]] = {
    "AllocateProducerIdsRequest": AllocateProducerIdsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "AllocateProducerIdsResponse": AllocateProducerIdsResponse,
}

REQUEST_FIELDS: Final = """
AllocateProducerIdsRequest 0 flexible 0+
 broker_id int32
 broker_epoch int64 = -1
"""
RESPONSE_FIELDS: Final = """
AllocateProducerIdsResponse 0 flexible 0+
 throttle_time_ms int32
 error_code int16
 producer_id_start int64
 producer_id_len int32
"""
