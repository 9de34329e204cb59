"""The bytes of a scraper's connection, with or without TLS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import asyncio

READ_BYTES: Final = 4096


class Exchange(Protocol):
    """The connection of one request and its response."""

    async def read(self) -> bytes:
        """Return the next bytes; empty at the end. Raises OSError."""

    def write(self, data: bytes) -> None:
        """Send ``data``."""

    def end(self) -> None:
        """Tell the peer that no more bytes come."""


class PlainExchange:
    """An ``Exchange`` without TLS."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        """Return the next bytes that the peer has sent."""
        return await self._reader.read(READ_BYTES)

    def write(self, data: bytes) -> None:
        """Send ``data``."""
        self._writer.write(data)

    def end(self) -> None:
        """No-op: closing the socket ends the exchange."""
