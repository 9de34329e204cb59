"""The one place between a request and its handler: for principals, quotas and injected faults.

A ``Gate`` is asked twice about each request. ``admit`` sees it decoded, before its handler does, and lets it pass, answers it,
refuses it, or takes its time. ``release`` sees the answer before it is encoded, and may change it, hold it back, or close the
connection instead of sending it. A dispatcher without a gate lets all pass, and pays nothing for it.

Left out: requests that cannot be decoded, and ApiVersions in a version that is not served (KIP-511). No gate sees these.
"""

from collections.abc import Callable
from typing import Any, Protocol

from odradek.broker.context import RequestContext
from odradek.timing.reply import Reply


class Gate(Protocol):
    """What stands in front of all handlers of a dispatcher. Loop thread only.

    A method that raises has the request answered as if its handler had: UNKNOWN_SERVER_ERROR.
    """

    def admit(self, context: RequestContext, request: Any) -> Any:
        """None to let the request pass, or its answer: a response, NO_RESPONSE or CLOSE_CONNECTION; or a Reply of these."""

    def release(self, context: RequestContext, response: Any) -> Any:
        """The answer to send for ``response``, which is a handler's or one of ``admit``; or a Reply of it."""


class GateKeeper:
    """Takes requests through a gate, and the answers back. ``failed`` makes the answer of a step that raised."""

    def __init__(self, gate: Gate, failed: Callable[[RequestContext, Exception], Any]) -> None:
        self._gate = gate
        self._failed = failed

    def answer(
        self, context: RequestContext, request: Any, handle: Callable[[RequestContext, Any], Any], keep: Callable[[], Any]
    ) -> Any:
        """The answer, or a Reply of it.

        ``keep`` makes the request again, from bytes of its own: one that is not admitted at once outlives the frame that it is a
        view of.
        """
        verdict = self._gate.admit(context, request)
        if isinstance(verdict, Reply) and not verdict.done:
            request = keep()
        return self._then(context, verdict, lambda verdict: self._pass(context, request, handle, verdict))

    def _pass(self, context: RequestContext, request: Any, handle: Callable[[RequestContext, Any], Any], verdict: Any) -> Any:
        response = handle(context, request) if verdict is None else verdict
        return self._then(context, response, lambda response: self._gate.release(context, response))

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
