"""ExpireDelegationToken up to version 2. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple

from odradek.protocol.messages import shown


class ExpireDelegationTokenRequest(NamedTuple):
    """The ExpireDelegationToken request."""

    hmac: bytes = b""
    expiry_time_period_ms: int = 0

    def __repr__(self) -> str:
        return shown(self, "hmac")


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

REQUEST_FIELDS: Final = """
ExpireDelegationTokenRequest 1-2 flexible 2+
 hmac bytes
 expiry_time_period_ms int64
"""
RESPONSE_FIELDS: Final = """
ExpireDelegationTokenResponse 1-2 flexible 2+
 error_code int16
 expiry_timestamp_ms int64
 throttle_time_ms int32
"""
