"""The flow control of a connection: reading, its client's pace, and muting by quotas.

Unread bytes stay with the kernel, and so in the end with the client. This bounds the memory of a connection: one request's
answer, the frames of one read, and a partial frame.
"""

import asyncio
from typing import Final

from odradek.broker.network.socket_writer import SocketWriter


class FlowControl:
    """The state of both directions of one transport. Repeated calls are cheap: only changes reach the transport."""

    __slots__ = ("_is_writing_paused", "_transport", "_writer", "is_held", "is_muted", "is_reading")

    def __init__(self, transport: asyncio.Transport, writer: SocketWriter) -> None:
        self._transport: Final = transport
        self._writer: Final = writer
        # True if the transport reads, as last set here.
        self.is_reading = True
        # True if the transport's write buffer is full.
        self._is_writing_paused = False
        # True if the client is above its quotas.
        self.is_muted = False
        # Paused or muted.
        self.is_held = False

    def pause_writing(self, paused: bool) -> None:
        """Note that the transport's write buffer is full, or has drained."""
        self._is_writing_paused = paused
        self.is_held = paused or self.is_muted

    def mute(self, muted: bool) -> None:
        """Mute or unmute the connection. A muted connection begins no request."""
        self.is_muted = muted
        self.is_held = muted or self._is_writing_paused

    def may_begin(self) -> bool:
        """Return whether the next request may begin: the client keeps up with its answers, and with its quotas."""
        return not (self.is_held or self._writer.queue)

    def read(self, wanted: bool) -> None:
        """Start or stop reading."""
        if wanted is self.is_reading or self._transport.is_closing():
            return
        self.is_reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def insist(self) -> None:
        """Stop the transport again after bytes arrived unwanted: uvloop starts to read after ``connection_made``."""
        if not self.is_reading and not self._transport.is_closing():
            self._transport.pause_reading()

    def ended(self) -> None:
        """Note the end of the client's bytes: the transport has stopped reading by itself."""
        self.is_reading = False
