"""UnregisterBroker up to version 0. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple


class UnregisterBrokerRequest(NamedTuple):
    """The UnregisterBroker request."""

    broker_id: int = 0


class UnregisterBrokerResponse(NamedTuple):
    """The UnregisterBroker response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None


REQUEST: Final[dict[str, type[Any]]] = {
    "UnregisterBrokerRequest": UnregisterBrokerRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "UnregisterBrokerResponse": UnregisterBrokerResponse,
}

REQUEST_FIELDS: Final = """
UnregisterBrokerRequest 0 flexible 0+
 broker_id int32
"""
RESPONSE_FIELDS: Final = """
UnregisterBrokerResponse 0 flexible 0+
 throttle_time_ms int32
 error_code int16
 error_message string null
"""
