"""Whether a connection's socket is read, and whether its client takes what it is sent.

Bytes that are not read stay with the kernel, and so in the end with the client. That bounds the memory of a connection: one
request's answer, the frames of one read, and a frame under way.
"""

import asyncio
from typing import Final

from odradek.broker.network.socket_writer import SocketWriter


class FlowControl:
    """Both directions of one transport. Repeated calls cost nothing: the transport is told of changes only."""

    __slots__ = ("_transport", "_writer", "is_reading", "is_writing_paused")

    def __init__(self, transport: asyncio.Transport, writer: SocketWriter) -> None:
        self._transport: Final = transport
        self._writer: Final = writer
        # Whether the transport reads, as far as it was told here.
        self.is_reading = True
        # Whether the transport has more to send than it wants to hold.
        self.is_writing_paused = False

    def can_write(self) -> bool:
        """Whether the client keeps up with its answers."""
        return not (self.is_writing_paused or self._writer.queue)

    def read(self, wanted: bool) -> None:
        """Read from now on, or do not."""
        if wanted is self.is_reading or self._transport.is_closing():
            return
        self.is_reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def insist(self) -> None:
        """Something came though nothing is to be read: uvloop begins to read when it has told of a connection."""
        if not self.is_reading and not self._transport.is_closing():
            self._transport.pause_reading()

    def ended(self) -> None:
        """The client sends no more: the transport has stopped reading by itself."""
        self.is_reading = False
