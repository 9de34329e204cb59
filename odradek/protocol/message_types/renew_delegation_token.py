"""RenewDelegationToken up to version 2. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple

from odradek.protocol.messages import shown


class RenewDelegationTokenRequest(NamedTuple):
    """The RenewDelegationToken request."""

    hmac: bytes = b""
    renew_period_ms: int = 0

    def __repr__(self) -> str:
        return shown(self, "hmac")


class RenewDelegationTokenResponse(NamedTuple):
    """The RenewDelegationToken response."""

    error_code: int = 0
    expiry_timestamp_ms: int = 0
    throttle_time_ms: int = 0


REQUEST: Final[dict[str, type[Any]]] = {
    "RenewDelegationTokenRequest": RenewDelegationTokenRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "RenewDelegationTokenResponse": RenewDelegationTokenResponse,
}

REQUEST_FIELDS: Final = """
RenewDelegationTokenRequest 1-2 flexible 2+
 hmac bytes
 renew_period_ms int64
"""
RESPONSE_FIELDS: Final = """
RenewDelegationTokenResponse 1-2 flexible 2+
 error_code int16
 expiry_timestamp_ms int64
 throttle_time_ms int32
"""
