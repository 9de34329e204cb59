"""ExpireDelegationToken up to version 2. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple


class ExpireDelegationTokenRequest(NamedTuple):
    """The ExpireDelegationToken request."""

    hmac: bytes = b""
    expiry_time_period_ms: int = 0


class ExpireDelegationTokenResponse(NamedTuple):
    """The ExpireDelegationToken response."""

    error_code: int = 0
    expiry_timestamp_ms: int = 0
    throttle_time_ms: int = 0


REQUEST: Final[dict[str, type[Any]]] = {
    "ExpireDelegationTokenRequest": ExpireDelegationTokenRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "ExpireDelegationTokenResponse": ExpireDelegationTokenResponse,
}
