"""Large requests: decoded, handled and encoded in slices of the loop's time, and refused above the limits.

One request, valid or not, may delay other clients by milliseconds only, and may take memory of some twenty times its size, or
some tens of MiB. So requests above ``LARGE_BYTES`` come here, unless their API is never sliced. Large responses to small requests
come here, too (``route.ResponseSize``). Large responses share a ``memory``. The items of a request's arrays, at all depths
together, are limited; they are counted before they are created. A request above a limit closes the connection, like malformed
bytes: Kafka has no error code for it, and no limit except its heap.

``RequestTaker`` is the receiver of a connection's requests: ``dispatch.Dispatcher``, or before the login a guard
(``sasl_listeners``). It refuses frames above the limits.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, Protocol

from odradek.broker.large import Joined, NoRoom, Pieces, ResponseMemory, cut
from odradek.broker.network.route import ResponseSize, Route
from odradek.common.context import CLOSE_CONNECTION, NO_RESPONSE, RequestContext
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.error_codes_in import compile_sliced_error_scan
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.large_messages import ResponseTooLarge, Room, sliced_decoder, sliced_encoder
from odradek.timing.reply import Reply
from odradek.timing.slices import LIGHTEST, Slices

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator

    from odradek.broker.network.gate import GateKeeper
    from odradek.common.context import Session

# A smaller request has a few thousand items at most.
LARGE_BYTES: Final = 8 * 1024
# A Fetch of this size has some two thousand partitions.
_LARGE_FETCH_BYTES: Final = 64 * 1024
# 10,000 topics in a CreateTopics, with names of 249 bytes and 30 configs each, take 20 MB.
MOST_BYTES: Final = 32 * 1024 * 1024
# 10,000 partitions in 10,000 topics are 20,000 items. An item takes up to a kilobyte while its request is answered: decoded, as
# the answer's object, and encoded.
_ITEMS: Final = 50_000
_BYTES_AN_ITEM: Final = 50
_MOST_ITEMS: Final = 250_000
# For a request that is handled at once, at a microsecond or two per item.
_MOST_AT_ONCE: Final = 25_000
# Responses may be larger than their requests, for example with a group's members.
_RESPONSE_BYTES: Final = 64 * 1024 * 1024
_TIMES_ITS_REQUEST: Final = 20
# The usual minimum size of an item on the wire.
_LEAST_ITEM_BYTES: Final = 4

Outcome = list[Any] | MalformedMessage | None


def most_items(frame_bytes: int, *, in_pieces: bool) -> int:
    """Return how many items the arrays of a request of this size may have."""
    return min(_ITEMS + frame_bytes // _BYTES_AN_ITEM, _MOST_ITEMS if in_pieces else _MOST_AT_ONCE)


class LargeRequests:
    """The large requests of one broker. Loop thread only.

    ``pieces_of`` describes how to split an API's requests into pieces; other APIs' requests are handled at once. Requests of
    ``never_sliced`` APIs do not come here. Responses of APIs ``with_records`` are mostly slices of logs, and encoded at once.
    ``has_unbounded_response`` is true for APIs that may answer small requests with large responses.
    """

    def __init__(
        self,
        slices: Slices,
        memory: ResponseMemory,
        pieces_of: Callable[[ApiKey], Pieces | None],
        never_sliced: Collection[ApiKey],
        with_records: Collection[ApiKey] = (),
        has_unbounded_response: Callable[[ApiKey], bool] = lambda _: False,
    ) -> None:
        self._slices = slices
        self.memory = memory
        self._has_unbounded_response = has_unbounded_response
        self._pieces_of = pieces_of
        self._never_sliced = never_sliced
        self._with_records = with_records

    def largest_small_bytes(self, route: Route) -> int:
        """Return the size above which this API's requests come here."""
        if route.api_key in self._never_sliced:
            return sys.maxsize
        return _LARGE_FETCH_BYTES if route.api_key in self._with_records else LARGE_BYTES

    def ensure_allowed(self, key: int, size_bytes: int) -> None:
        """Raise MalformedMessage for a request above the API's size limit."""
        if size_bytes > MOST_BYTES and key not in self._never_sliced:
            raise MalformedMessage(f"{_name(key)}: {size_bytes} bytes: at most {MOST_BYTES} are allowed")

    def has_large_answers(self, route: Route) -> bool:
        """Return whether small requests of this API may have large responses."""
        return self._has_unbounded_response(route.api_key)

    def encode(
        self, route: Route, context: RequestContext, response: Any, failed: Callable[[RequestContext, Exception], Any]
    ) -> Reply[Outcome]:
        """Encode a large response to a small request, in slices. The result is that of ``answer``."""
        return self._slices.run(self._encoding(route, context, response, self._most_bytes(0), failed), LIGHTEST)

    def answer(
        self,
        route: Route,
        context: RequestContext,
        frame: bytes | memoryview,
        position: int,
        services: Any,
        gate: GateKeeper | None,
        failed: Callable[[RequestContext, Exception], Any],
    ) -> Reply[Outcome]:
        """Return a Reply of the response's chunks, of the reason why there are none, or of None: the connection must close.

        ``frame``'s header v1 ends at ``position``. ``failed`` makes the response for a bug in the broker. Raises
        MalformedMessage.
        """
        self.ensure_allowed(route.api_key, len(frame))
        # A view may be overwritten after the call.
        own = frame if type(frame) is bytes else bytes(frame)
        most_bytes = self._most_bytes(len(own))
        handling = _Handling(route, services, gate, self._pieces_of(route.api_key), most_bytes, self.memory)
        work = self._work(route, context, own, position, handling, failed)
        return self._slices.run(work, len(frame))

    def _work(
        self,
        route: Route,
        context: RequestContext,
        frame: bytes,
        position: int,
        handling: _Handling,
        failed: Callable[[RequestContext, Exception], Any],
    ) -> Generator[Reply[Any] | None, Any, Outcome]:
        # Most brokers never need it. The first import takes some milliseconds, and compiling the decoder takes as long again.
        yield None
        decode = sliced_decoder(route.api_key, route.version)
        yield None
        weight = len(frame)
        limit = most_items(weight, in_pieces=handling.is_in_pieces)
        try:
            request = yield from decode(frame, position, limit)
        except MalformedMessage as error:
            return error
        del frame
        try:
            response = yield from handling.answer(self._slices, context, request, weight)
        except Exception as error:  # noqa: BLE001  a bug of ours: answered as a server error, logged in full
            response = failed(context, error)
            handling.has_counted = False
        del request
        if handling.refusal is not None:
            return handling.refusal
        counts = not handling.has_counted
        return (yield from self._encoding(route, context, response, handling.most_bytes, failed, counts=counts))

    def _encoding(
        self,
        route: Route,
        context: RequestContext,
        response: Any,
        most_bytes: int,
        failed: Callable[[RequestContext, Exception], Any],
        *,
        counts: bool = True,
    ) -> Generator[Reply[Any] | None, Any, Outcome]:
        """Encode ``response``. ``counts``: count its error codes."""
        if response is NO_RESPONSE:
            return []
        if response is CLOSE_CONNECTION:
            return None
        try:
            if route.api_key in self._with_records:
                if counts:
                    route.note_errors(context, response)
                return route.encode(context.correlation_id, response)
            if counts:
                scan = compile_sliced_error_scan(route.api_key)
                yield None
                yield from scan(response, route)
            return (yield from self._large_encoding(route, context, response, most_bytes))
        except (ResponseTooLarge, NoRoom) as error:
            return MalformedMessage(f"{route.api_key.name} v{route.version}: {error}")
        except Exception as error:  # noqa: BLE001  a bug of ours
            failed(context, error)
            return None

    def _most_bytes(self, request_bytes: int) -> int:
        """Return the size limit of the response to a request of this size."""
        most_bytes = max(_TIMES_ITS_REQUEST * request_bytes, _RESPONSE_BYTES)
        return min(most_bytes, self.memory.limit_bytes) if self.memory.limit_bytes > 0 else most_bytes

    def _large_encoding(
        self, route: Route, context: RequestContext, response: Any, most_bytes: int
    ) -> Generator[Reply[Any] | None, Any, Outcome]:
        """Encode a large response in slices. Raises ResponseTooLarge and NoRoom."""
        size = ResponseSize()
        for _ in size.count(response):
            yield None
        if size.items * _LEAST_ITEM_BYTES > most_bytes:
            raise ResponseTooLarge(f"the response has more than {most_bytes} bytes")
        memory, session = self.memory, context.session
        has_connection = session.connection is not None
        held = memory.begin(session)
        chunks: list[Any] | None = None
        try:
            memory.grow(held, size.object_bytes)
            room = Room(most_bytes)
            counted = most_bytes
            work = sliced_encoder(route.api_key, route.version)(context.correlation_id, response, room)
            while not has_connection or session.connection is not None:
                yield None
                while (waits_for := memory.turn(held)) is not None:
                    if (yield waits_for) is False:
                        raise NoRoom
                try:
                    next(work)
                except StopIteration as end:
                    chunks = end.value
                    break
                memory.grow(held, counted - room.left)
                counted = room.left
        finally:
            memory.grow(held, -size.object_bytes)
            memory.written(held)
            if chunks is None or not has_connection:
                held.release()
        return chunks


class _Handling:
    """One request on its way through the gate, if there is one, and piece by piece to its handler."""

    def __init__(
        self,
        route: Route,
        services: Any,
        gate: GateKeeper | None,
        pieces: Pieces | None,
        most_bytes: int,
        memory: ResponseMemory,
    ) -> None:
        self._route = route
        self._handle = route.handle
        # True if the error codes of the pieces' answers have been counted.
        self.has_counted = False
        # The size limit of the response, and the reason for refusing a larger one.
        self.most_bytes = most_bytes
        self.refusal: MalformedMessage | None = None
        self._services = services
        self._gate = gate
        self._pieces = pieces
        self._memory = memory

    @property
    def is_in_pieces(self) -> bool:
        """Return whether the request is handled in pieces."""
        return self._pieces is not None

    def answer(
        self, slices: Slices, context: RequestContext, request: Any, weight: int
    ) -> Generator[Reply[Any] | None, Any, Any]:
        if self._gate is None:
            return (yield from self._in_pieces(context, request))

        def handle(context: RequestContext, request: Any) -> Reply[Any]:
            return slices.run(self._in_pieces(context, request), weight)

        outcome = self._gate.answer(context, request, handle, lambda: request)
        return (yield outcome) if isinstance(outcome, Reply) else outcome

    def _in_pieces(self, context: RequestContext, request: Any) -> Generator[Reply[Any] | None, Any, Any]:
        pieces = self._pieces
        if pieces is None:
            response = self._handle(self._services, context, request)
            return (yield response) if isinstance(response, Reply) else response
        joined = Joined(request, pieces)
        items = 0
        for piece in cut(request, pieces):
            while self._route.has_large_answers and (waits_for := self._memory.room(context.session)) is not None:
                if (yield waits_for) is False:
                    raise NoRoom
            response = self._handle(self._services, context, piece)
            if isinstance(response, Reply):
                response = yield response
                if isinstance(response, Exception):
                    raise response
            else:
                yield None
            if response is not CLOSE_CONNECTION:
                self.has_counted = True
                yield from compile_sliced_error_scan(self._route.api_key)(response, self._route)
            if response is CLOSE_CONNECTION or getattr(response, "error_code", ErrorCode.NONE) != ErrorCode.NONE:
                return response
            size = ResponseSize()
            for _ in size.count(response):
                yield None
            items += size.items
            if items * _LEAST_ITEM_BYTES > self.most_bytes:
                self.refusal = MalformedMessage(f"{self._route.api_key.name}: the response has more than {self.most_bytes} bytes")
                return CLOSE_CONNECTION
            joined.add(response)
        return joined.response()


def _name(key: int) -> str:
    try:
        return ApiKey(key).name
    except ValueError:
        return f"API key {key}"


class RequestTaker(Protocol):
    """The receiver of a connection's requests. Loop thread only."""

    def pipeline_depth(self, frame: bytes | memoryview) -> int:
        """Return how many requests may be unanswered, including this one."""

    def ensure_allowed(self, key: int, size_bytes: int) -> None:
        """Raise MalformedMessage for a partial frame whose announced size is too large."""

    def dispatch(self, frame: bytes | memoryview, session: Session, arrived_ms: float) -> list[Any] | Reply[Outcome]:
        """Return the response's chunks, or a Reply of them. Raises MalformedMessage, CloseConnection."""
