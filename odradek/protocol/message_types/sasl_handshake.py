"""SaslHandshake up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class SaslHandshakeRequest(NamedTuple):
    """The SaslHandshake request."""

    mechanism: str = ""


class SaslHandshakeResponse(NamedTuple):
    """The SaslHandshake response."""

    error_code: int = 0
    mechanisms: Sequence[str] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "SaslHandshakeRequest": SaslHandshakeRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "SaslHandshakeResponse": SaslHandshakeResponse,
}

REQUEST_FIELDS: Final = """
SaslHandshakeRequest 0-1
 mechanism string
"""
RESPONSE_FIELDS: Final = """
SaslHandshakeResponse 0-1
 error_code int16
 mechanisms []string
"""
