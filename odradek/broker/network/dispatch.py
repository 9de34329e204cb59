"""Dispatch: from a frame to the chunks of its response. Header, route, decoding, gate, handler, encoding.

Synchronous, on the loop thread, and independent of connections. A ``Route`` caches everything about a pair of API and version, so
a request costs one dictionary look-up here. The table of APIs, the loader of handlers, and the handlers' services are given at
construction. Dispatch itself knows no API except ApiVersions.

Requests that cannot be answered raise ``MalformedMessage``. As in Kafka, the connection closes for an unserved API or version,
and for bytes that are no request. The exception is ApiVersions in a version too new: the answer is in version 0, with
UNSUPPORTED_VERSION and the versions of ApiVersions itself (KIP-511).
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Any, Final

from odradek.broker.large import NoRoom
from odradek.broker.network.gate import Gate, GateKeeper
from odradek.broker.network.large_requests import LargeRequests, Outcome
from odradek.broker.network.route import TOTAL_TIME_BOUNDS_MS, Route, is_small
from odradek.common.context import CLOSE_CONNECTION, NO_RESPONSE, Handler, Reply, RequestContext, Served, Session
from odradek.common.logging import log
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import response_encoder
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.frames import read_request_header
from odradek.protocol.messages import messages
from odradek.timing.clock import Clock

_FIRST_BOUND_MS: Final = TOTAL_TIME_BOUNDS_MS[0]
_API_KEY: Final = Struct(">h").unpack_from


class CloseConnection(Exception):
    """The connection must close without a response."""


class Dispatcher:
    """The dispatcher of one broker.

    ``services`` is every handler's first argument, and opaque to dispatch. ``gate`` is asked about every request; without one all
    pass (``add_gate``). ``large`` answers large requests in slices; without it they are handled like others.
    """

    def __init__(
        self,
        services: Any,
        clock: Clock,
        apis: Mapping[ApiKey, Served],
        load_handler: Callable[[ApiKey], Handler],
        gate: Gate | None = None,
        large: LargeRequests | None = None,
    ) -> None:
        self._services = services
        self._monotonic_ms = clock.monotonic_ms
        self._apis: dict[int, Served] = {int(api_key): served for api_key, served in apis.items()}
        self._load_handler = load_handler
        self._gate: GateKeeper | None = None if gate is None else GateKeeper((gate,), _server_error)
        self._large = large
        self._routes: dict[int, Route] = {}
        self._error_watcher: Callable[[RequestContext, Sequence[int]], None] | None = None
        # The end of the last request. A request that arrived before it had to queue. This saves a reading of the clock.
        self._free_ms = 0.0

    def routes(self) -> list[Route]:
        """Return the route of every requested API and version, with its metrics."""
        return list(self._routes.values())

    def watch_errors(self, watcher: Callable[[RequestContext, Sequence[int]], None] | None) -> None:
        """Have ``watcher`` told the error codes in responses (``Route.error_watcher``); None ends that."""
        self._error_watcher = watcher
        for route in self._routes.values():
            route.error_watcher = watcher

    def add_gate(self, gate: Gate, *, first: bool = False, before: Gate | None = None) -> None:
        """Ask ``gate`` about new requests: as the last gate, as the ``first``, or ``before`` another."""
        gates = () if self._gate is None else self._gate.gates
        place = 0 if first else gates.index(before) if before in gates else len(gates)
        self._gate = GateKeeper((*gates[:place], gate, *gates[place:]), _server_error)

    def remove_gate(self, gate: Gate) -> None:
        """Stop asking ``gate``. It still releases the answers to requests that it has admitted."""
        gates = [] if self._gate is None else [each for each in self._gate.gates if each is not gate]
        self._gate = GateKeeper(gates, _server_error) if gates else None

    def pipeline_depth(self, frame: bytes | memoryview) -> int:
        """Return how many of the connection's requests may be unanswered, including this one (``Served.pipeline_depth``)."""
        served = self._apis.get(_API_KEY(frame)[0])
        return 1 if served is None else served.pipeline_depth

    def ensure_allowed(self, key: int, size_bytes: int) -> None:
        """Raise MalformedMessage for a partial frame whose announced size is too large."""
        if self._large is not None:
            self._large.ensure_allowed(key, size_bytes)

    def dispatch(self, frame: bytes | memoryview, session: Session, arrived_ms: float) -> list[Any] | Reply[Outcome]:
        """Answer a frame. Return the response's chunks, empty if none is due, or a Reply of them if they come later.

        A Reply without a response completes with the reason or with None: the connection must close. ``arrived_ms`` is the
        arrival of the frame (monotonic). A frame that is a view may be overwritten after the call. Raises ``MalformedMessage`` if
        the request cannot be answered, and ``CloseConnection`` if it must not be.
        """
        key, version, correlation_id, client_id, position = read_request_header(frame)
        route = self._routes.get(key << 16 | version)
        if route is None:
            if not self._is_served(key, version):
                return self._refuse(key, version, correlation_id)
            route = self._make_route(key, version)
        if session.client_id is None:
            session.client_id = client_id
        if arrived_ms < self._free_ms:
            route.queue_ms += self._free_ms - arrived_ms
        if len(frame) > route.largest_small_bytes and self._large is not None:
            context = RequestContext(route.api_key, version, correlation_id, client_id, session)
            return self._answer_large(self._large, route, context, frame, position, arrived_ms)
        request = route.decode(frame, position)
        context = RequestContext(route.api_key, version, correlation_id, client_id, session)
        try:
            if self._gate is None:
                response = route.handle(self._services, context, request)
            else:
                response = self._answer_through_gate(self._gate, route, context, request, frame, position)
        except Exception as error:  # noqa: BLE001  a bug of ours: answered as a server error, logged in full
            response = _server_error(context, error)
        if type(response) is Reply:
            if not response.done:
                return self._wait(response, context, route, arrived_ms)
            response = response.response
        if self._large is not None and route.has_large_answers and isinstance(response, tuple) and not is_small(response):
            return self._counted(self._large.encode(route, context, response, _server_error), route, arrived_ms)
        chunks = _encode(context, route, response)
        self._free_ms = now_ms = self._monotonic_ms()
        total_ms = now_ms - arrived_ms
        route.total_ms += total_ms
        # Nearly all requests are in the first bucket, which saves the search.
        route.buckets[0 if total_ms <= _FIRST_BOUND_MS else bisect_left(TOTAL_TIME_BOUNDS_MS, total_ms)] += 1
        return chunks

    def call(self, context: RequestContext, request: Any, *, is_own: bool = False) -> Any:
        """Answer a request that needs no decoding: return a response, NO_RESPONSE, CLOSE_CONNECTION, or a Reply of these.

        The request goes through the gate to the handler. Without a gate, or for the process's own requests, the handler's
        exceptions are raised. Nothing is counted.
        """
        handle = self._load_handler(context.api_key)
        if self._gate is None or is_own:
            return handle(self._services, context, request)
        context.size_bytes = 0
        return self._gate.answer(
            context, request, lambda context, request: handle(self._services, context, request), lambda: request
        )

    def _answer_large(
        self,
        large: LargeRequests,
        route: Route,
        context: RequestContext,
        frame: bytes | memoryview,
        position: int,
        arrived_ms: float,
    ) -> list[Any] | Reply[Outcome]:
        """Answer a large request, in slices."""
        context.size_bytes = len(frame)
        outcome = large.answer(route, context, frame, position, self._services, self._gate, _server_error)
        return self._counted(outcome, route, arrived_ms)

    def _counted(self, outcome: Reply[Outcome], route: Route, arrived_ms: float) -> list[Any] | Reply[Outcome]:
        """Count the time of an outcome, and return it."""

        def count(answer: Outcome) -> Outcome:
            self._free_ms = now_ms = self._monotonic_ms()
            route.note_waited(now_ms - arrived_ms, 0)
            return answer

        outcome = outcome.then(count)
        if not outcome.done:
            return outcome
        answer: Outcome = outcome.response
        if answer is None:
            raise CloseConnection
        if isinstance(answer, MalformedMessage):
            raise answer
        return answer

    def _wait(self, reply: Reply[Any], context: RequestContext, route: Route, arrived_ms: float) -> Reply[Outcome]:
        """Return a Reply of the encoded chunks, or of None if encoding fails: the code that completes ``reply`` sees no error."""
        waits_from_ms = self._monotonic_ms()
        encoded: Reply[Outcome] = Reply()
        encoded.is_decided = reply.is_decided

        def answer(response: Any) -> None:
            self._free_ms = now_ms = self._monotonic_ms()
            large = self._large
            if large is not None and route.has_large_answers and isinstance(response, tuple) and not is_small(response):
                route.note_waited(now_ms - arrived_ms, now_ms - waits_from_ms)
                large.encode(route, context, response, _server_error).when_done(encoded.complete)
                return
            chunks = _encode_late(context, route, response)
            route.note_waited(now_ms - arrived_ms, now_ms - waits_from_ms)
            encoded.complete(chunks)

        reply.when_done(answer)
        return encoded

    def _answer_through_gate(
        self, gate: GateKeeper, route: Route, context: RequestContext, request: Any, frame: bytes | memoryview, position: int
    ) -> Any:
        context.size_bytes = len(frame)
        answer = gate.answer(
            context,
            request,
            lambda context, request: route.handle(self._services, context, request),
            lambda: request if type(frame) is bytes else route.decode(bytes(frame), position),
        )
        if context.cost is not None and isinstance(answer, Reply) and not answer.done:
            context.cost.waits(self._monotonic_ms())
        return answer

    def _is_served(self, key: int, version: int) -> bool:
        served = self._apis.get(key)
        return served is not None and served.min_version <= version <= served.max_version

    def _make_route(self, key: int, version: int) -> Route:
        api_key = ApiKey(key)
        route = self._routes[key << 16 | version] = Route(api_key, version, self._load_handler(api_key))
        route.error_watcher = self._error_watcher
        if self._large is not None:
            route.largest_small_bytes = self._large.largest_small_bytes(route)
            route.has_large_answers = self._large.has_large_answers(route)
        return route

    def _refuse(self, key: int, version: int, correlation_id: int) -> list[Any]:
        if key == ApiKey.API_VERSIONS:
            handle = self._load_handler(ApiKey.API_VERSIONS)
            context = RequestContext(ApiKey.API_VERSIONS, 0, correlation_id, None, Session("", ("", 0)))
            response = handle(self._services, context, messages(ApiKey.API_VERSIONS).request())
            own = [api for api in response.api_keys if api.api_key == ApiKey.API_VERSIONS]
            refusal = response._replace(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)
            return response_encoder(ApiKey.API_VERSIONS, 0)(correlation_id, refusal)
        try:
            name = ApiKey(key).name
        except ValueError:
            raise MalformedMessage(f"API key {key} is unknown") from None
        raise MalformedMessage(f"{name} version {version} is not served")


def _encode(context: RequestContext, route: Route, response: Any) -> list[Any]:
    if response is NO_RESPONSE:
        return []
    if response is CLOSE_CONNECTION:
        if route.error_watcher is not None:
            route.error_watcher(context, ())
        raise CloseConnection
    if route.encode_success is not None:
        frame = route.encode_success(context.correlation_id, response)
        if frame is not None:
            return [frame]
    route.note_errors(context, response)
    return route.encode(context.correlation_id, response)


def _encode_late(context: RequestContext, route: Route, response: Any) -> list[Any] | None:
    """Encode a response that was waited for; an exception becomes a server error. None if the connection must close.

    A failure to encode is logged.
    """
    try:
        return _encode(context, route, response)
    except CloseConnection:
        return None
    except Exception as error:  # noqa: BLE001  a bug of ours
        if not isinstance(response, Exception):
            _log_failure(context, error)
            return None
    return _encode_late(context, route, _server_error(context, response))


def _server_error(context: RequestContext, error: Exception) -> Any:
    """Return Kafka's answer to a failed handler: UNKNOWN_SERVER_ERROR, or CLOSE_CONNECTION if the response has no error code.

    NoRoom is always CLOSE_CONNECTION. The failure is logged.
    """
    _log_failure(context, error)
    if isinstance(error, NoRoom):
        return CLOSE_CONNECTION
    response = messages(context.api_key).response
    return response(error_code=ErrorCode.UNKNOWN_SERVER_ERROR) if "error_code" in response._fields else CLOSE_CONNECTION


def _log_failure(context: RequestContext, error: Exception) -> None:
    if isinstance(error, NoRoom):
        log.warn("closing a connection", peer=f"{context.peer[0]}:{context.peer[1]}", cause=f"{context.api_key.name}: {error}")
        return
    log.error(
        "a request failed",
        api=context.api_key.name,
        version=context.version,
        peer=f"{context.peer[0]}:{context.peer[1]}",
        client_id=context.client_id,
        exception=error,
    )
