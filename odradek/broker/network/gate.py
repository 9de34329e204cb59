"""The one place between a request and its handler: for principals, quotas, injected faults, and for those who watch.

A ``Gate`` is asked twice about each request. ``admit`` sees it decoded, before its handler does, and lets it pass, answers it,
refuses it, or takes its time. ``release`` sees the answer before it is encoded, and may change it, hold it back, or close the
connection instead of sending it. A dispatcher without a gate lets all pass, and pays nothing for it.

Gates stand in a row. A request passes them from the first to the last, its answer from the last to the first: the first gate
sees what comes from the client and what goes to it. A request that a gate answers is not seen by those behind it.

Left out: requests that cannot be decoded, and ApiVersions in a version that is not served (KIP-511). No gate sees these.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from odradek.common.context import RequestContext
from odradek.timing.reply import Reply

Handle: TypeAlias = Callable[[RequestContext, Any], Any]


class Gate(Protocol):
    """What stands in front of all handlers of a dispatcher. Loop thread only.

    A method that raises has the request answered as if its handler had: UNKNOWN_SERVER_ERROR. Gates that have admitted a
    request whose handler raises release that answer.
    """

    def admit(self, context: RequestContext, request: Any) -> Any:
        """None to let the request pass, or its answer: a response, NO_RESPONSE or CLOSE_CONNECTION; or a Reply of these."""

    def release(self, context: RequestContext, response: Any) -> Any:
        """The answer to send for ``response``, which is a handler's or one of ``admit``; or a Reply of it."""


class GateKeeper:
    """Takes requests through ``gates``, and the answers back. ``failed`` makes the answer of a step that raised."""

    def __init__(self, gates: Sequence[Gate], failed: Callable[[RequestContext, Exception], Any]) -> None:
        self.gates = tuple(gates)
        self._failed = failed

    def answer(self, context: RequestContext, request: Any, handle: Handle, keep: Callable[[], Any]) -> Any:
        """The answer, or a Reply of it.

        ``keep`` makes the request again, from bytes of its own: one that is not admitted at once outlives the frame that it is a
        view of.
        """
        return self._go_through(0, context, request, handle, keep)

    def _go_through(self, position: int, context: RequestContext, request: Any, handle: Handle, keep: Callable[[], Any]) -> Any:
        """The same, from the gate at ``position`` on."""
        if position == len(self.gates):
            return self._then(context, handle(context, request), lambda response: self._told(context, response))
        gate = self.gates[position]
        verdict = gate.admit(context, request)
        if isinstance(verdict, Reply) and not verdict.done:
            request = kept = keep()
            # The frame is gone when the next gate asks for it.
            keep = lambda: kept  # noqa: E731

        def enter(verdict: Any) -> Any:
            try:
                response = self._go_through(position + 1, context, request, handle, keep) if verdict is None else verdict
            except Exception as error:  # noqa: BLE001  a fault of ours, and the gate waits for the answer that is sent
                response = self._failed(context, error)
            return self._then(context, response, lambda response: gate.release(context, response))

        return self._then(context, verdict, enter)

    def _told(self, context: RequestContext, response: Any) -> Any:
        """The response, or the answer to say that a handler failed after it had returned a Reply."""
        return self._failed(context, response) if isinstance(response, Exception) else response

    def _then(self, context: RequestContext, outcome: Any, step: Callable[[Any], Any]) -> Any:
        """What ``step`` makes of the outcome: now if it is there, else as a Reply."""
        if not isinstance(outcome, Reply):
            return step(outcome)
        if outcome.done:
            return step(outcome.response)
        reply: Reply[Any] = Reply()
        reply.is_decided = outcome.is_decided
        outcome.when_done(lambda value: self._go_on(context, reply, value, step))
        return reply

    def _go_on(self, context: RequestContext, reply: Reply[Any], value: Any, step: Callable[[Any], Any]) -> None:
        try:
            outcome = step(value)
        except Exception as error:  # noqa: BLE001  a fault of ours: told to the client as such, and to the log in full
            outcome = self._failed(context, error)
        if isinstance(outcome, Reply):
            outcome.when_done(reply.complete)
        else:
            reply.complete(outcome)
