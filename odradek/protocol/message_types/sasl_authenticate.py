"""SaslAuthenticate up to version 2. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple

from odradek.protocol.messages import shown


class SaslAuthenticateRequest(NamedTuple):
    """The SaslAuthenticate request."""

    auth_bytes: bytes = b""

    def __repr__(self) -> str:
        return shown(self, "auth_bytes")


class SaslAuthenticateResponse(NamedTuple):
    """The SaslAuthenticate response."""

    error_code: int = 0
    error_message: str | None = None
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0

    def __repr__(self) -> str:
        return shown(self, "auth_bytes")


REQUEST: Final[dict[str, type[Any]]] = {
    "SaslAuthenticateRequest": SaslAuthenticateRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "SaslAuthenticateResponse": SaslAuthenticateResponse,
}

REQUEST_FIELDS: Final = """
SaslAuthenticateRequest 0-2 flexible 2+
 auth_bytes bytes
"""
RESPONSE_FIELDS: Final = """
SaslAuthenticateResponse 0-2 flexible 2+
 error_code int16
 error_message string null
 auth_bytes bytes
 session_lifetime_ms int64 1+ = 0
"""
