"""From a frame to the chunks that answer it: header, API key, version, handler.

Synchronous, on the loop thread. What dispatch knows of a pair of API and version is looked up once and kept in ``Route``s, so a
request costs one dictionary look-up here. Requests that cannot be answered raise ``MalformedMessage``: the connection closes,
as Kafka's does, for an API that is not served, a version that is not, and bytes that are not a request. The exception is
ApiVersions in a version too new, answered in version 0 with UNSUPPORTED_VERSION and the list (KIP-511).
"""

from bisect import bisect_left
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from odradek.broker.context import CLOSE_CONNECTION, NO_RESPONSE, Reply, RequestContext
from odradek.broker.handlers import SERVED, load_handler
from odradek.broker.logging import log
from odradek.broker.network.route import TOTAL_TIME_BOUNDS_MS, Route
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.headers import read_request_header
from odradek.protocol.messages import messages
from odradek.protocol.responses import framed, response_encoder

if TYPE_CHECKING:
    from odradek.broker.server import Broker

_FIRST_BOUND_MS: Final = TOTAL_TIME_BOUNDS_MS[0]

Respond = Callable[[list[Any] | None], None]


class Decided(Enum):
    """The answer comes later, and what was asked for has been done: what comes behind may be begun."""

    DECIDED = "decided"


DECIDED: Final = Decided.DECIDED


class CloseConnection(Exception):
    """The connection is to be closed without a response."""


class Dispatcher:
    """Answers frames for one broker."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._monotonic_ms = broker.clock.monotonic_ms
        self._routes: dict[int, Route] = {}
        # When the last request was done with: one that had come before that had to queue. This saves a reading of the clock.
        self._free_ms = 0.0

    def routes(self) -> list[Route]:
        """Every API and version that was asked for, with what was counted of it."""
        return list(self._routes.values())

    def dispatch(
        self,
        frame: bytes | memoryview,
        listener_name: str,
        peer: tuple[str, int],
        respond: Respond,
        arrived_ms: float,
    ) -> list[Any] | Decided | None:
        """The response's chunks; an empty list where none is due; None where ``respond`` will be called with them later.

        DECIDED is None where nothing but the response is still to come.

        ``arrived_ms`` is when the frame had come (monotonic). Raises ``MalformedMessage`` for what cannot be answered and
        ``CloseConnection`` for what is not to be.
        """
        key, version, correlation_id, client_id, position = read_request_header(frame)
        route = self._routes.get(key << 16 | version)
        if route is None:
            if not _is_served(key, version):
                return self._refuse(key, version, correlation_id)
            route = self._routes[key << 16 | version] = Route(ApiKey(key), version)
        if arrived_ms < self._free_ms:
            route.queue_ms += self._free_ms - arrived_ms
        api_key = route.api_key
        request = route.decode(frame, position)
        context = RequestContext(api_key, version, correlation_id, client_id, listener_name, peer)
        try:
            response = route.handle(self._broker, context, request)
        except Exception as error:  # noqa: BLE001  a fault of ours: told to the client as such, and to the log in full
            response = _server_error(context, error)
        if type(response) is Reply:
            if not response.done:
                self._wait(response, context, route, respond, arrived_ms)
                return DECIDED if response.is_decided else None
            response = response.response
        chunks = _encode(context, route, response)
        self._free_ms = now_ms = self._monotonic_ms()
        total_ms = now_ms - arrived_ms
        route.total_ms += total_ms
        # Nearly all requests are in the first bucket, and need not search for theirs.
        route.buckets[0 if total_ms <= _FIRST_BOUND_MS else bisect_left(TOTAL_TIME_BOUNDS_MS, total_ms)] += 1
        return chunks

    def _wait(self, reply: Reply[Any], context: RequestContext, route: Route, respond: Respond, arrived_ms: float) -> None:
        """Respond when the reply is there; with None where it cannot be told: who completes it has no part in that."""
        waits_from_ms = self._monotonic_ms()

        def answer(response: Any) -> None:
            self._free_ms = now_ms = self._monotonic_ms()
            chunks: list[Any] | None = None
            try:
                chunks = _encode(context, route, response)
            except CloseConnection:
                pass
            except Exception as error:  # noqa: BLE001  a fault of ours
                _log_failure(context, error)
            route.note_waited(now_ms - arrived_ms, now_ms - waits_from_ms)
            respond(chunks)

        reply.when_done(answer)

    def _refuse(self, key: int, version: int, correlation_id: int) -> list[Any]:
        if key == ApiKey.API_VERSIONS:
            handle = load_handler(ApiKey.API_VERSIONS)
            context = RequestContext(ApiKey.API_VERSIONS, 0, correlation_id, None, "", ("", 0))
            response = handle(self._broker, context, None)
            response.error_code = ErrorCode.UNSUPPORTED_VERSION
            return response_encoder(ApiKey.API_VERSIONS, 0)(correlation_id, response)
        try:
            name = ApiKey(key).name
        except ValueError:
            raise MalformedMessage(f"API key {key} is unknown") from None
        raise MalformedMessage(f"{name} version {version} is not served")


def _is_served(key: int, version: int) -> bool:
    try:
        served = SERVED[ApiKey(key)]
    except (ValueError, KeyError):
        return False
    return served.min_version <= version <= served.max_version


def _encode(context: RequestContext, route: Route, response: Any) -> list[Any]:
    if type(response) is bytes:
        # The body, as its handler has written it for a version that is flexible; it says that all is well.
        return [framed(context.correlation_id, response)]
    if response is NO_RESPONSE:
        return []
    if response is CLOSE_CONNECTION:
        raise CloseConnection
    route.scan_errors(response, route)
    return route.encode(context.correlation_id, response)


def _server_error(context: RequestContext, error: Exception) -> Any:
    """What Kafka answers when a handler fails: UNKNOWN_SERVER_ERROR where the response can say so; else the connection goes."""
    _log_failure(context, error)
    response = messages(context.api_key).response()
    if "error_code" not in response.__slots__:
        return CLOSE_CONNECTION
    response.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
    return response


def _log_failure(context: RequestContext, error: Exception) -> None:
    log.error(
        "a request failed",
        api=context.api_key.name,
        version=context.version,
        peer=f"{context.peer[0]}:{context.peer[1]}",
        client_id=context.client_id,
        exception=error,
    )
