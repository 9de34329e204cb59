"""From a frame to the chunks that answer it: header, API key, version, handler.

Synchronous, on the loop thread. What dispatch knows of a pair of API and version is looked up once and kept in ``_Route``s, so a
request costs one dictionary look-up here. Requests that cannot be answered raise ``MalformedMessage``: the connection closes,
as Kafka's does, for an API that is not served, a version that is not, and bytes that are not a request. The exception is
ApiVersions in a version too new, answered in version 0 with UNSUPPORTED_VERSION and the list (KIP-511).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from odradek.broker.context import CLOSE_CONNECTION, NO_RESPONSE, Reply, RequestContext
from odradek.broker.handlers import SERVED, load_handler
from odradek.broker.logging import log
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.headers import read_request_header
from odradek.protocol.messages import messages
from odradek.protocol.requests import decode_request
from odradek.protocol.responses import encode_response

if TYPE_CHECKING:
    from odradek.broker.server import Broker

Respond = Callable[[list[Any]], None]


class CloseConnection(Exception):
    """The connection is to be closed without a response."""


class _Route:
    """How one API is handled in one version, and how often it was."""

    __slots__ = ("api_key", "handle", "requests", "version")

    def __init__(self, api_key: ApiKey, version: int) -> None:
        self.api_key = api_key
        self.version = version
        self.handle = load_handler(api_key)
        self.requests = 0


class Dispatcher:
    """Answers frames for one broker."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._routes: dict[int, _Route] = {}

    def requests_by_api(self) -> dict[tuple[ApiKey, int], int]:
        """How many requests of each API and version were handled."""
        return {(route.api_key, route.version): route.requests for route in self._routes.values()}

    def dispatch(
        self, frame: bytes | memoryview, listener_name: str, peer: tuple[str, int], respond: Respond
    ) -> list[Any] | None:
        """The response's chunks; an empty list where none is due; None where ``respond`` will be called with them later.

        Raises ``MalformedMessage`` for what cannot be answered and ``CloseConnection`` for what is not to be.
        """
        key, version, correlation_id, client_id, position = read_request_header(frame)
        route = self._routes.get(key << 16 | version)
        if route is None:
            if not _is_served(key, version):
                return self._refuse(key, version, correlation_id)
            route = self._routes[key << 16 | version] = _Route(ApiKey(key), version)
        route.requests += 1
        api_key = route.api_key
        request = decode_request(api_key, version, frame, position)
        context = RequestContext(api_key, version, correlation_id, client_id, listener_name, peer)
        try:
            response = route.handle(self._broker, context, request)
        except Exception as error:  # noqa: BLE001  a fault of ours: told to the client as such, and to the log in full
            response = _server_error(context, error)
        if type(response) is Reply:
            if not response.done:
                response.when_done(lambda later: respond(_encode(context, later)))
                return None
            done: list[Any] = []
            response.when_done(done.append)
            response = done[0]
        return _encode(context, response)

    def _refuse(self, key: int, version: int, correlation_id: int) -> list[Any]:
        if key == ApiKey.API_VERSIONS:
            handle = load_handler(ApiKey.API_VERSIONS)
            context = RequestContext(ApiKey.API_VERSIONS, 0, correlation_id, None, "", ("", 0))
            response = handle(self._broker, context, None)
            response.error_code = ErrorCode.UNSUPPORTED_VERSION
            return encode_response(ApiKey.API_VERSIONS, 0, correlation_id, response)
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


def _encode(context: RequestContext, response: Any) -> list[Any]:
    if response is NO_RESPONSE:
        return []
    if response is CLOSE_CONNECTION:
        raise CloseConnection
    return encode_response(context.api_key, context.version, context.correlation_id, response)


def _server_error(context: RequestContext, error: Exception) -> Any:
    """What Kafka answers when a handler fails: UNKNOWN_SERVER_ERROR where the response can say so; else the connection goes."""
    log.error(
        "a request failed",
        api=context.api_key.name,
        version=context.version,
        peer=f"{context.peer[0]}:{context.peer[1]}",
        client_id=context.client_id,
        exception=error,
    )
    response = messages(context.api_key).response()
    if "error_code" not in response.__slots__:
        return CLOSE_CONNECTION
    response.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
    return response
