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
