"""Rules applied to requests: before their handlers see them, and to their answers.

An answer is split by a transport that cuts its next write, and sends the pieces one by one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from odradek.broker.api import load_handler
from odradek.common.context import CLOSE_CONNECTION, NO_RESPONSE, Reply, RequestContext
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages
from odradek.testing.asking import PEER
from odradek.testing.faults.request import ANSWERED_FIRST, Request, answer_error, can_divide, joined, put_errors, without

if TYPE_CHECKING:
    from odradek.broker.start.server import Broker as BrokerCore
    from odradek.common.context import Session
    from odradek.testing.faults.fault import Fault


# The pause between two pieces. If there are many, it is one turn of the loop.
_PAUSE_S: Final = 0.001
_MANY: Final = 50


def split_next(core: BrokerCore, session: Session, cuts: int | tuple[int, ...]) -> None:
    """Split the next write to a client: into pieces of one size, or after these byte positions."""
    for connection in core.connections or ():
        if connection.session is session:
            connection.write_through(lambda transport: _splitting(transport, cuts))


def _splitting(transport: asyncio.Transport, cuts: int | tuple[int, ...]) -> SplittingTransport:
    splitting = transport if isinstance(transport, SplittingTransport) else SplittingTransport(transport)
    splitting.cuts = cuts
    return splitting


class SplittingTransport(asyncio.Transport):
    """A wrapped transport whose next write is cut at ``cuts``. Later writes wait behind the pieces."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._pieces: deque[bytes] = deque()
        self._is_turn_due = False
        self._is_ending = False
        self.cuts: int | tuple[int, ...] | None = None

    def write(self, data: Any) -> None:
        """See asyncio.Transport."""
        cuts, self.cuts = self.cuts, None
        if cuts is None and not self._pieces:
            self._transport.write(data)
            return
        self._pieces += [bytes(data)] if cuts is None else _cut(bytes(data), cuts)
        self._send_piece()

    def get_write_buffer_size(self) -> int:
        """See asyncio.Transport."""
        return self._transport.get_write_buffer_size() + sum(map(len, self._pieces))

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return the transport's information, but never the socket: writing to it would bypass the pieces."""
        return None if name == "socket" else self._transport.get_extra_info(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """See asyncio.Transport."""
        self._transport.set_write_buffer_limits(high, low)

    def is_closing(self) -> bool:
        """See asyncio.Transport."""
        return self._is_ending or self._transport.is_closing()

    def close(self) -> None:
        """Close once all pieces are sent."""
        self._is_ending = True
        if not self._pieces:
            self._transport.close()

    def abort(self) -> None:
        """See asyncio.Transport."""
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


__tracebackhide__ = True

_THROTTLE: Final = "throttle_time_ms"


class Rules(Protocol):
    """The rules that requests are matched with (``faults``)."""

    @property
    def core(self) -> BrokerCore:
        """Return the broker's running process."""

    def firing_at(self, request: Request) -> Fault | None:
        """Return the rule with an action that fires at a request."""

    def restart_now(self, *, lose_power: bool = False) -> None:
        """End the broker as kill -9 does, or its machine as a loss of power does, and start it again."""


class FaultGate:
    """A ``Gate`` that applies the rules. The test kit's own requests pass it."""

    def __init__(self, faults: Rules) -> None:
        self._faults = faults
        # Rules to apply to the answer, by id() of the request's context. Keeping the context keeps the id unique.
        self._due: dict[int, tuple[RequestContext, Fault]] = {}
        # Held requests and answers: the rule, the reply, and the value that completes it.
        self._held: list[tuple[Fault, Reply[Any], Any]] = []
        # The rules that pause the whole broker.
        self._pausing: list[Fault] = []

    def admit(self, context: RequestContext, message: Any) -> Any:
        """Apply the rule that fires at the request, if one does."""
        if context.session.peer == PEER:
            return None
        if self._pausing:
            return self._hold(self._pausing[0], None).then(lambda _: None)
        request = Request(self._faults.core, context, message)
        fault = self._faults.firing_at(request)
        return None if fault is None else self._begin(fault, request)

    def release(self, context: RequestContext, response: Any) -> Any:
        """Apply the rule that is due at the response, if there is one."""
        _, fault = self._due.pop(id(context), (None, None))
        if fault is not None:
            response = self._end(fault, context, response)
        if self._pausing and context.session.peer != PEER and not isinstance(response, Reply):
            return self._hold(self._pausing[0], response)
        return response

    def let_go(self, fault: Fault | None) -> None:
        """Release all that a rule holds; None for all rules."""
        self._pausing = [each for each in self._pausing if fault is not None and each is not fault]
        held, self._held = self._held, []
        for each, reply, value in held:
            if fault is not None and each is not fault:
                self._held.append((each, reply, value))
            elif not reply.done:
                reply.complete(value)

    def forget(self) -> None:
        """Drop all pending work: its process has ended."""
        self._due.clear()
        self._held.clear()
        self._pausing.clear()

    def _begin(self, fault: Fault, request: Request) -> Any:
        """Return the verdict on the request."""
        value = fault.value
        match fault.action, value:
            case "error", _:
                return self._answer_error(fault, request)
            case "close", "before":
                return CLOSE_CONNECTION
            case "stall", _:
                return self._hold(fault, None)
            case "delay_ms", _:
                return self._hold_for(fault, value)
            case "pause_ms", _:
                self._pausing.append(fault)
                self._faults.core.timer.call_after(value, partial(self.let_go, fault))
                return self._hold(fault, None)
            case "restart" | "power_loss", "before":
                self._faults.restart_now(lose_power=fault.action == "power_loss")
                return Reply()
            case _:
                self._due[id(request.context)] = (request.context, fault)
                return None

    def _end(self, fault: Fault, context: RequestContext, response: Any) -> Any:
        """Apply a rule to the answer of its request."""
        match fault.action:
            case "drop":
                return self._hold(fault, CLOSE_CONNECTION)
            case "close":
                return CLOSE_CONNECTION
            case "restart" | "power_loss":
                self._faults.restart_now(lose_power=fault.action == "power_loss")
                return Reply()
            case "throttle_ms" if response is not NO_RESPONSE and response is not CLOSE_CONNECTION:
                # A shared response has a class of its own.
                plain = messages(context.api_key).response(*response)
                return plain._replace(**{_THROTTLE: fault.value}) if _THROTTLE in plain._fields else response
            case "split":
                split_next(self._faults.core, context.session, fault.value)
        return response

    def _hold(self, fault: Fault, value: Any) -> Reply[Any]:
        reply: Reply[Any] = Reply()
        self._held = [each for each in self._held if not each[1].done]
        self._held.append((fault, reply, value))
        return reply

    def _hold_for(self, fault: Fault, delay_ms: int) -> Reply[Any]:
        reply = self._hold(fault, None)

        def go_on() -> None:
            if not reply.done:
                reply.complete(None)

        self._faults.core.timer.call_after(delay_ms, go_on)
        return reply

    def _answer_error(self, fault: Fault, request: Request) -> Any:
        code, api_key, message = int(fault.value), request.api_key, request.message
        if api_key == ApiKey.PRODUCE and message.acks == 0:
            return CLOSE_CONNECTION
        if api_key in ANSWERED_FIRST:
            asked = message._replace(max_wait_ms=0) if api_key == ApiKey.FETCH else message
            return _then(self._handle(request, asked), lambda response: put_errors(request, response, code, fault.means))
        if "topic" not in fault.words or not can_divide(api_key):
            return answer_error(request, code, None)
        errors, rest = answer_error(request, code, fault.means), without(request, fault.means)
        if rest is None:
            return errors
        return _then(self._handle(request, rest), lambda response: joined(api_key, response, errors))

    def _handle(self, request: Request, message: Any) -> Any:
        return load_handler(request.api_key)(self._faults.core, request.context, message)


def _then(outcome: Any, step: Any) -> Any:
    if isinstance(outcome, Reply):
        reply: Reply[Any] = Reply()
        reply.is_decided = outcome.is_decided
        outcome.when_done(lambda response: reply.complete(response if isinstance(response, Exception) else step(response)))
        return reply
    return outcome if outcome in (NO_RESPONSE, CLOSE_CONNECTION) else step(outcome)
