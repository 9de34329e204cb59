"""Envelope up to version 0. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple


class EnvelopeRequest(NamedTuple):
    """The Envelope request."""

    request_data: bytes = b""
    request_principal: bytes | None = None
    client_host_address: bytes = b""


class EnvelopeResponse(NamedTuple):
    """The Envelope response."""

    response_data: bytes | None = None
    error_code: int = 0


REQUEST: Final[dict[str, type[Any]]] = {
    "EnvelopeRequest": EnvelopeRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "EnvelopeResponse": EnvelopeResponse,
}

REQUEST_FIELDS: Final = """
EnvelopeRequest 0 flexible 0+
 request_data bytes
 request_principal bytes null
 client_host_address bytes
"""
RESPONSE_FIELDS: Final = """
EnvelopeResponse 0 flexible 0+
 response_data bytes null = null
 error_code int16
"""
