"""Gates between a request and its handler: for principals, quotas, injected faults, and observers.

A ``Gate`` is called twice for each request. ``admit`` gets the decoded request before the handler, and lets it pass, answers it,
refuses it, or delays it. ``release`` gets the answer before it is encoded, and may change it, delay it, or close the connection
instead of sending it. A dispatcher without gates has no overhead.

Gates form a chain. A request passes them from first to last, its answer from last to first: the first gate sees exactly what the
client sends and receives. If a gate answers a request, the gates behind it do not see the request.

Left out: undecodable requests, and ApiVersions in an unserved version (KIP-511). No gate sees these.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

from odradek.common.context import RequestContext
from odradek.timing.reply import Reply

Handle: TypeAlias = Callable[[RequestContext, Any], Any]


class Gate(Protocol):
    """A filter in front of all handlers of a dispatcher. Loop thread only.

    If a method raises, the request is answered as if its handler had: UNKNOWN_SERVER_ERROR. If a handler raises, the gates that
    admitted the request release that answer.
    """

    def admit(self, context: RequestContext, request: Any) -> Any:
        """Return None to let the request pass, or its answer: a response, NO_RESPONSE, CLOSE_CONNECTION, or a Reply of these."""

    def release(self, context: RequestContext, response: Any) -> Any:
        """Return the answer to send in place of ``response``, which comes from a handler or from ``admit``; or a Reply of it."""


class GateKeeper:
    """The chain of ``gates``, for requests and their answers. ``failed`` makes the answer for a step that raised."""

    def __init__(self, gates: Sequence[Gate], failed: Callable[[RequestContext, Exception], Any]) -> None:
        self.gates = tuple(gates)
        self._failed = failed

    def answer(self, context: RequestContext, request: Any, handle: Handle, keep: Callable[[], Any]) -> Any:
        """Return the answer, or a Reply of it.

        ``keep`` decodes the request again from its own copy of the bytes. A request that is not admitted at once outlives the
        frame that it is a view of.
        """
        return self._go_through(0, context, request, handle, keep)

    def _go_through(self, position: int, context: RequestContext, request: Any, handle: Handle, keep: Callable[[], Any]) -> Any:
        """Do the same from the gate at ``position`` on."""
        if position == len(self.gates):
            return self._then(context, handle(context, request), partial(self._answer_for, context))
        verdict = self.gates[position].admit(context, request)
        if verdict is None:
            return self._enter(position, context, request, handle, keep, None)
        if isinstance(verdict, Reply) and not verdict.done:
            request = kept = keep()
            # The frame is gone by the time of the next gate.
            keep = lambda: kept  # noqa: E731
        return self._then(context, verdict, partial(self._enter, position, context, request, handle, keep))

    def _enter(
        self, position: int, context: RequestContext, request: Any, handle: Handle, keep: Callable[[], Any], verdict: Any
    ) -> Any:
        """Go on after the gate's verdict, and let the gate release the answer."""
        try:
            response = self._go_through(position + 1, context, request, handle, keep) if verdict is None else verdict
        except Exception as error:  # noqa: BLE001  a bug of ours; the gate still expects an answer
            response = self._failed(context, error)
        return self._then(context, response, partial(self.gates[position].release, context))

    def _answer_for(self, context: RequestContext, response: Any) -> Any:
        """Return the response, or the error answer if a handler failed after returning a Reply."""
        return self._failed(context, response) if isinstance(response, Exception) else response

    def _then(self, context: RequestContext, outcome: Any, step: Callable[[Any], Any]) -> Any:
        """Return ``step(outcome)``: now if the outcome is there, else as a Reply."""
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
        except Exception as error:  # noqa: BLE001  a bug of ours: answered as a server error, logged in full
            outcome = self._failed(context, error)
        if isinstance(outcome, Reply):
            outcome.when_done(reply.complete)
        else:
            reply.complete(outcome)
