"""A lull: time passes at the broker, and no client is heard.

A client's request that arrives meanwhile is begun when the lull is over. Whatever clients do, and however fast, the same time
passes for each of them: a session ends where its time is over, and a consumer that polls does not poll a million times a week.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.context import RequestContext
    from odradek.broker.server import Broker as BrokerCore

__tracebackhide__ = True


class _ClosedGate:
    """A gate that opens once, for all that have come by then."""

    def __init__(self) -> None:
        self._waiting: list[Reply[None]] = []

    def admit(self, context: RequestContext, request: Any) -> Reply[None]:  # noqa: ARG002  nobody is let in
        """Part of ``Gate``."""
        self._waiting.append(reply := Reply[None]())
        return reply

    def release(self, context: RequestContext, response: Any) -> Any:  # noqa: ARG002  nothing is changed
        """Part of ``Gate``."""
        return response

    def open(self) -> None:
        for reply in self._waiting:
            reply.complete(None)


@contextmanager
def lull(core: BrokerCore) -> Iterator[None]:
    """Hear no client of ``core`` in the ``with``. On the loop thread."""
    gate = _ClosedGate()
    core.dispatcher.add_gate(gate, first=True)
    if core.connections is not None:
        core.connections.begin_lull()
    try:
        yield
    finally:
        if core.connections is not None:
            core.connections.end_lull()
        core.dispatcher.remove_gate(gate)
        gate.open()
