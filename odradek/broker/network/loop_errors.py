"""What the event loop has to report, as lines of the broker's log: nobody gets asyncio's own tracebacks on stderr."""

import asyncio
from typing import Any

from odradek.broker.logging import log


def report_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:  # noqa: ARG001  asyncio's signature
    """Log one line with the cause, and the peer if a connection is meant. For ``loop.set_exception_handler``.

    An OSError is the machine's or the network's, and needs no traceback: no descriptor is left for another connection, say.
    """
    fields: dict[str, object] = {"cause": context["message"]}
    transport = context.get("transport")
    peer = None if transport is None else transport.get_extra_info("peername")
    if peer:
        fields["peer"] = f"{peer[0]}:{peer[1]}"
    error = context.get("exception")
    if isinstance(error, OSError):
        log.warn("event loop", error=str(error), **fields)
    else:
        log.error("event loop", error, **fields)
