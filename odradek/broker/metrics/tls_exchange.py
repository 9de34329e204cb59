"""TLS between the metrics endpoint and a scraper's connection.

OpenSSL works on two buffers in memory, so a connection counts towards the limit from the moment it is accepted, including the
handshake. asyncio's own TLS would count it afterwards, and would let any number of handshakes wait.
"""

from __future__ import annotations

import contextlib
import ssl
from typing import TYPE_CHECKING

from odradek.broker.metrics.exchange import READ_BYTES
from odradek.broker.network.tls_connection import handshake_cause

if TYPE_CHECKING:
    import asyncio


class HandshakeFailed(OSError):
    """A failed handshake. The text is the reason."""


class TlsExchange:
    """An ``exchange.Exchange`` over TLS."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext) -> None:
        self._reader = reader
        self._writer = writer
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    async def shake_hands(self) -> None:
        """Do the handshake. Call it before anything else. Raises HandshakeFailed, OSError."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                if not await self._receive():
                    raise HandshakeFailed("the client ended the handshake") from None
            except ssl.SSLError as error:
                # Send the alert.
                self._flush()
                raise HandshakeFailed(handshake_cause(error)) from error
            else:
                self._flush()
                return

    async def read(self) -> bytes:
        """Return the next decrypted bytes."""
        while True:
            try:
                return self._tls.read(READ_BYTES)
            except ssl.SSLWantReadError:
                if not await self._receive():
                    return b""

    def write(self, data: bytes) -> None:
        """Encrypt and send ``data``."""
        self._tls.write(data)
        self._flush()

    def end(self) -> None:
        """Send the closing alert, and do not wait for the peer's."""
        with contextlib.suppress(ssl.SSLError, ValueError):
            self._tls.unwrap()
        self._flush()

    async def _receive(self) -> bool:
        """Receive bytes; False at the end."""
        data = await self._reader.read(READ_BYTES)
        self._incoming.write(data)
        return bool(data)

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._writer.write(self._outgoing.read())
