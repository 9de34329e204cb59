"""The flow control of a connection: reading, its client's pace, and muting by quotas.

Bytes that are not read stay with the kernel, and so in the end with the client. That bounds the memory of a connection: one
request's answer, the frames of one read, and a frame under way.
"""

import asyncio
from typing import Final

from odradek.broker.network.socket_writer import SocketWriter


class FlowControl:
    """Both directions of one transport. Repeated calls cost nothing: the transport is told of changes only."""

    __slots__ = ("_is_writing_paused", "_transport", "_writer", "is_held", "is_muted", "is_reading")

    def __init__(self, transport: asyncio.Transport, writer: SocketWriter) -> None:
        self._transport: Final = transport
        self._writer: Final = writer
        # Whether the transport reads, as far as it was told here.
        self.is_reading = True
        # Whether the transport has more to send than it wants to hold.
        self._is_writing_paused = False
        # Whether the client has taken more than its quotas.
        self.is_muted = False
        # Either of them.
        self.is_held = False

    def pause_writing(self, paused: bool) -> None:
        """The transport has more to send than it wants to hold, or has not any more."""
        self._is_writing_paused = paused
        self.is_held = paused or self.is_muted

    def mute(self, muted: bool) -> None:
        """Begin requests no more, or again."""
        self.is_muted = muted
        self.is_held = muted or self._is_writing_paused

    def may_begin(self) -> bool:
        """Return whether the next request may begin: the client keeps up with its answers, and with its quotas."""
        return not (self.is_held or self._writer.queue)

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
