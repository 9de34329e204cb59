"""UnregisterController up to version 0. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple


class UnregisterControllerRequest(NamedTuple):
    """The UnregisterController request."""

    controller_id: int = 0


class UnregisterControllerResponse(NamedTuple):
    """The UnregisterController response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None


REQUEST: Final[dict[str, type[Any]]] = {
    "UnregisterControllerRequest": UnregisterControllerRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "UnregisterControllerResponse": UnregisterControllerResponse,
}

REQUEST_FIELDS: Final = """
UnregisterControllerRequest 0 flexible 0+
 controller_id int32
"""
RESPONSE_FIELDS: Final = """
UnregisterControllerResponse 0 flexible 0+
 throttle_time_ms int32
 error_code int16
 error_message string null
"""
