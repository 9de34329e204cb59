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
