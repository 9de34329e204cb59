"""One connection of the HTTP port: Uvicorn's, with limits on slow and on talkative clients.

Uvicorn limits neither the time of a request's head nor the time in which a client reads its response. A connection is aborted if
it has no complete head within ``IDLE_S`` of its begin or of the last response. After a request with the token it has
``ADMITTED_IDLE_S``. It is also aborted if its client reads nothing of a response for ``STALLED_S``.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import TYPE_CHECKING, Final

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from odradek.common.logging import log
from odradek.http.access import MOST_HEAD_BYTES

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from uvicorn.config import Config
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle
    from uvicorn.server import ServerState

IDLE_S: Final = 10.0
ADMITTED_IDLE_S: Final = 60.0
STALLED_S: Final = 60.0
_BAD_REQUEST: Final = 400
_HEAD_TOO_LARGE: Final = 431


class _BrokerLog(logging.Handler):
    """Passes Uvicorn's errors to the broker's log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Pass an exception on."""
        error = None if record.exc_info is None else record.exc_info[1]
        if isinstance(error, Exception):
            log.error("an HTTP request failed", error)


def _logger() -> logging.Logger:
    """Return a logger that belongs to nobody else. Clients' mistakes are not logged."""
    logger = logging.Logger("odradek.http", logging.ERROR)  # noqa: LOG001  it must not inherit the handlers of the process
    logger.addHandler(_BrokerLog())
    return logger


_LOGGER: Final = _logger()


class HttpConnection(H11Protocol):
    """A connection. ``on_end`` is called when it has ended. Loop thread only."""

    def __init__(self, config: Config, state: ServerState, on_end: Callable[[], object]) -> None:
        super().__init__(config, state, {})
        self.logger = _LOGGER
        self.access_log = False
        self._on_end = on_end
        self._deadline: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as Uvicorn's own
        """Begin: the socket is accepted."""
        super().connection_made(transport)
        self._await_head(IDLE_S)

    def connection_lost(self, exc: Exception | None) -> None:
        """End: the socket is closed."""
        self._forget(self._deadline)
        self._forget(self._stall)
        super().connection_lost(exc)
        self._on_end()

    def data_received(self, data: bytes) -> None:
        """Handle the client's bytes."""
        super().data_received(data)
        if self._is_answering():
            self._forget(self._deadline)

    def on_response_complete(self) -> None:
        """Begin the next request, if the client has sent it already."""
        is_admitted = self.scope["state"].get("is_admitted", False)
        super().on_response_complete()
        if not self._is_answering():
            self._await_head(ADMITTED_IDLE_S if is_admitted else IDLE_S)

    def pause_writing(self) -> None:
        """Pause: the client does not read its response fast enough."""
        super().pause_writing()
        self._stall = self.loop.call_later(STALLED_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Resume: the client has caught up."""
        self._forget(self._stall)
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is no HTTP; called while h11's error is handled."""
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else _BAD_REQUEST
        reason = (
            f"a head has {MOST_HEAD_BYTES} bytes at most" if status == _HEAD_TOO_LARGE else f"not an HTTP request: {error or msg}"
        )
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        body = json.dumps({"error": reason}).encode() + b"\n"
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body))), ("Connection", "close")]
        response = h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status])
        for event in (response, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _await_head(self, within_s: float) -> None:
        self._forget(self._deadline)
        self._deadline = self.loop.call_later(within_s, self._expire)

    def _expire(self) -> None:
        # A client that still reads its response is the stall's business.
        if self._stall is None or self._stall.cancelled():
            self.transport.abort()
        else:
            self._await_head(IDLE_S)

    @staticmethod
    def _forget(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()
