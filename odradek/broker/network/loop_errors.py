"""Errors of the event loop, as lines of the broker's log in place of asyncio's tracebacks on stderr."""

import asyncio
from typing import Any

from odradek.common.logging import LineLimit, log
from odradek.timing.clock import Clock


class LoopErrors:
    """Reporter of a loop's errors. A ``LineLimit`` limits the lines for the same cause."""

    def __init__(self, clock: Clock) -> None:
        self._line_limit = LineLimit(clock)

    def report(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:  # noqa: ARG002  asyncio's signature
        """Log one line with the cause, and the peer if a connection is concerned. For ``loop.set_exception_handler``.

        An OSError comes from the machine or the network, and needs no traceback: for example, no file descriptor is left.
        """
        error = context.get("exception")
        left_out = self._line_limit.left_out((context["message"], type(error)))
        if left_out is None:
            return
        fields: dict[str, object] = {"cause": context["message"], **left_out}
        transport = context.get("transport")
        peer = None if transport is None else transport.get_extra_info("peername")
        if peer:
            fields["peer"] = f"{peer[0]}:{peer[1]}"
        if isinstance(error, OSError | MemoryError):
            log.warn("error in the event loop", error=str(error), **fields)
        else:
            log.error("error in the event loop", error, **fields)
