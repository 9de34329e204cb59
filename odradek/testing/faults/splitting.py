"""An answer that arrives in pieces: a transport that cuts what it is given next, and sends the rest turn by turn."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from odradek.broker.context import Session
    from odradek.broker.server import Broker as BrokerCore

__tracebackhide__ = True

# Between two pieces; where there are many, a turn of the loop.
_PAUSE_S: Final = 0.001
_MANY: Final = 50


def split_next(core: BrokerCore, session: Session, cuts: int | tuple[int, ...]) -> None:
    """Cut the next write to a client: into pieces of one size, or behind the bytes of these numbers."""
    for connection in core.connections or ():
        if connection.session is session:
            connection.write_through(lambda transport: _splitting(transport, cuts))


def _splitting(transport: asyncio.Transport, cuts: int | tuple[int, ...]) -> SplittingTransport:
    splitting = transport if isinstance(transport, SplittingTransport) else SplittingTransport(transport)
    splitting.cuts = cuts
    return splitting


class SplittingTransport(asyncio.Transport):
    """Another transport, whose next write is cut at ``cuts``. What comes later waits behind the pieces."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._pieces: deque[bytes] = deque()
        self._is_turn_due = False
        self._is_ending = False
        self.cuts: int | tuple[int, ...] | None = None

    def write(self, data: Any) -> None:
        """Part of Transport."""
        cuts, self.cuts = self.cuts, None
        if cuts is None and not self._pieces:
            self._transport.write(data)
            return
        self._pieces += [bytes(data)] if cuts is None else _cut(bytes(data), cuts)
        self._send_piece()

    def get_write_buffer_size(self) -> int:
        """Part of Transport."""
        return self._transport.get_write_buffer_size() + sum(map(len, self._pieces))

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Part of Transport. Nobody is to write to the socket itself."""
        return None if name == "socket" else self._transport.get_extra_info(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Part of Transport."""
        self._transport.set_write_buffer_limits(high, low)

    def is_closing(self) -> bool:
        """Part of Transport."""
        return self._is_ending or self._transport.is_closing()

    def close(self) -> None:
        """Part of Transport: after the pieces."""
        self._is_ending = True
        if not self._pieces:
            self._transport.close()

    def abort(self) -> None:
        """Part of Transport."""
        self._pieces.clear()
        self._transport.abort()

    def _send_piece(self) -> None:
        if self._is_turn_due or not self._pieces:
            return
        self._transport.write(self._pieces.popleft())
        if self._pieces:
            self._is_turn_due = True
            loop = asyncio.get_running_loop()
            if len(self._pieces) > _MANY:
                loop.call_soon(self._take_turn)
            else:
                loop.call_later(_PAUSE_S, self._take_turn)
        elif self._is_ending:
            self._transport.close()

    def _take_turn(self) -> None:
        self._is_turn_due = False
        if self._transport.is_closing():
            self._pieces.clear()
        self._send_piece()


def _cut(data: bytes, cuts: int | tuple[int, ...]) -> list[bytes]:
    ends = range(cuts, len(data), cuts) if isinstance(cuts, int) else [each for each in cuts if each < len(data)]
    starts = [0, *ends]
    return [data[start:end] for start, end in zip(starts, [*ends, len(data)], strict=True)]
