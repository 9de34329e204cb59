"""Serves the control interface by HTTP. Each request runs on the broker's loop; its connection's thread waits for it.

A connection may carry several requests (``connections``). Routes that are not open require ``Authorization: Bearer TOKEN``,
which is checked first. A refused request is one line in the log, and a line limit bounds the lines for each address. With a
certificate the interface uses TLS.

Its OpenAPI description is made from its routes.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from hmac import compare_digest
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from odradek import __version__
from odradek.broker.network.listeners import cannot_bind
from odradek.common.config.definitions import InvalidConfig
from odradek.common.logging import LineLimit, log
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.testing.control.connections import MOST_BYTES, SMALL_BYTES, Refusal, Server
from odradek.testing.control.route import BadRequest, ControlCall, ControlObjects, Json, Missing, Route, check
from odradek.testing.control.routes import ROUTES
from odradek.testing.in_process import NotRunning
from odradek.testing.misuse import is_of_the_kit
from odradek.timing.system_clock import SystemClock

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable, Mapping

    from odradek.testing.control.route import Json, Route
    from odradek.testing.faults.vocabulary import FaultKeywords
    from odradek.testing.threaded import Broker

OPENAPI_PATH = "/openapi.json"
_ERRORS = {
    "400": "The request is invalid; `error` has the reason, and the allowed values.",
    "401": "The token is missing or wrong.",
    "404": "It does not exist.",
    "409": "The state is another one, or does not allow it; `error` describes the state.",
    "422": "Kafka refuses the request; `code` is the name of its error.",
}


def description() -> Json:
    """Return the OpenAPI 3.1 description."""
    paths: Json = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "odradek control", "version": __version__},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
    }


def _operation(route: Route) -> Json:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    in_query = [{"name": name, "in": "query", "schema": field.schema()} for name, field in route.query.items()]
    operation: Json = {
        "summary": route.about,
        "operationId": f"{route.method.lower()}{re.sub(r'[^a-zA-Z]+', '_', route.path).rstrip('_')}",
        "parameters": in_path + in_query,
        "responses": {
            "200": {"description": "Done.", "content": {"application/json": {"schema": {"type": "object"}}}},
            **{status: {"description": about} for status, about in _ERRORS.items()},
        },
    }
    if route.is_open:
        operation["security"] = []
    if route.body or route.open_ended:
        schema = {
            "type": "object",
            "properties": {name: field.schema() for name, field in route.body.items()},
            "required": [name for name, field in route.body.items() if field.is_required],
            "additionalProperties": route.open_ended,
        }
        operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return operation


# A surrogate half, escaped or in UTF-8.
_MAY_BE_HALVES = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
_UNAUTHORIZED = 401
_NOT_FOUND = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}


# Open routes, by method and path. All others require the token, forks' too: strangers must not learn which exist.
_OPEN = {("GET", OPENAPI_PATH), *((route.method, route.path) for route in ROUTES if route.is_open)}


class ControlServer:
    """Serves a broker and the forks of its snapshots, by TLS if there is a ``context``. ``url`` is the address."""

    def __init__(self, broker: Broker, token: str, context: Callable[[], ssl.SSLContext] | None = None) -> None:
        """Make the server. ``context`` is called for each connection, in a thread of the server."""
        self.url = ""
        self._context = context
        self._line_limit = LineLimit(SystemClock())
        self._broker = broker
        self._held = ControlObjects()
        self._token = token
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Server | None = None
        self._thread: threading.Thread | None = None

    def start(self, host: str, port: int) -> None:
        """Listen; port 0 picks a free port. Call it on the broker's loop. Raises OSError."""
        self._loop = asyncio.get_running_loop()
        try:
            self._server = Server((host, port), self, self._context)
        except OSError as error:
            raise cannot_bind(host, port, error) from error
        self.url = f"{'http' if self._context is None else 'https'}://{host}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="control", daemon=True)
        self._thread.start()

    def add_faults(self, rules: Iterable[FaultKeywords]) -> None:
        """Add these rules to the broker, with numbers, as if a client had added them."""
        for rule in rules:
            self._held.faults[self._broker][self._held.new_id()] = self._broker.faults.add_checked(rule)

    async def close(self) -> None:
        """Stop listening, and stop the forks. Requests that are being answered are not awaited."""
        if self._server is not None and self._thread is not None:
            # The server's thread may be waiting for this loop.
            await asyncio.to_thread(self._server.shutdown)
            self._server.server_close()
            self._thread.join()
        await self._held.close()

    def admit(self, method: str, target: str, authorization: str, peer: str) -> int:
        """Return how many bytes the body may have. Raises Refusal without the token, except for the open routes."""
        try:
            path = urlsplit(target).path
        except ValueError as error:
            raise Refusal(400, f"{target!r} is not a path: {error}") from error
        if (method, path) in _OPEN:
            return SMALL_BYTES
        if compare_digest(authorization.encode(), f"Bearer {self._token}".encode()):
            return MOST_BYTES
        if self._loop is not None:
            cause = "its token is wrong" if authorization else "it has no token"
            self._loop.call_soon_threadsafe(self._tell_refused, peer, cause)
        raise Refusal(
            _UNAUTHORIZED, "Authorization: Bearer TOKEN is missing or wrong; the broker printed the token when it started"
        )

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, Json]:
        """Return status and answer of an admitted request."""
        try:
            return 200, self._done(method, urlsplit(target), body)
        except Refusal as refusal:
            return refusal.status, {"error": str(refusal)}
        except BadRequest as error:
            return 400, {"error": str(error)}
        except Missing as error:
            return 404, {"error": str(error)}
        except NotRunning:
            return 409, {"error": "the broker is not running: POST /broker/start starts it"}
        except (AssertionError, OSError, RuntimeError) as error:
            return 409, {"error": str(error)}
        except KafkaError as error:
            return 404 if error.code in _NOT_FOUND else 422, {"error": error.reason, "code": ErrorCode(error.code).name}
        except InvalidConfig as error:
            return 400, {"error": str(error)}
        except Exception as error:  # noqa: BLE001  the kit's own refusals are the client's mistakes; the rest is a fault of ours
            if isinstance(error, TypeError | ValueError) and is_of_the_kit(error):
                return 400, {"error": str(error)}
            log.error("a control request failed", error, route=f"{method} {target}")
            return 500, {"error": f"{type(error).__name__}: the broker's log says more"}

    def _done(self, method: str, url: SplitResult, body: bytes) -> Json:
        """Return the route's answer. Raises the errors that ``answer`` handles."""
        assert self._loop is not None  # noqa: S101  it was started
        if (method, url.path) == ("GET", OPENAPI_PATH):
            return description()
        broker, path = self._addressed(url.path)
        route, named = _route(method, path)
        call = ControlCall(broker, self._held, named, _query(route, url.query), _body(route, body))
        return asyncio.run_coroutine_threadsafe(route.handle(call), self._loop).result()

    def _addressed(self, path: str) -> tuple[Broker, str]:
        """Return the broker that a path names, and the rest of the path. Raises Missing."""
        found = re.fullmatch(r"/forks/([^/]+)(/.+)", path)
        return (self._broker, path) if found is None else (self._held.fork(found[1]), found[2])

    def _tell_refused(self, peer: str, cause: str) -> None:
        """Log a refused request. Runs on the loop."""
        extra_fields = self._line_limit.admit((peer, cause))
        if extra_fields is not None:
            log.warn("control request refused", peer=peer, cause=cause, **extra_fields)


def _route(method: str, path: str) -> tuple[Route, Mapping[str, str]]:
    allowed = []
    for route in ROUTES:
        found = re.fullmatch(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", route.path), path)
        if found is not None:
            if route.method == method:
                return route, {name: unquote(part) for name, part in found.groupdict().items()}
            allowed.append(route.method)
    if allowed:
        raise Refusal(405, f"{path} allows {', '.join(allowed)}, not {method}")
    raise Missing(f"no such path: {path}; see {OPENAPI_PATH} for all paths")


def _query(route: Route, query: str) -> dict[str, str]:
    fields = dict(parse_qsl(query, keep_blank_values=True))
    check(route.query, fields, f"the query of {route.path}")
    return fields


def _body(route: Route, body: bytes) -> Json:
    try:
        fields: Any = json.loads(body or b"{}")
        if _MAY_BE_HALVES.search(body):
            json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise BadRequest("the body has half of a surrogate pair, which is not a character") from error
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON: {error}") from error
    if fields is None:
        # Some clients send null for an empty body.
        fields = {}
    if not isinstance(fields, dict):
        raise BadRequest(f"the body must be an object, not {type(fields).__name__}")
    if not route.open_ended:
        check(route.body, fields, f"{route.method} {route.path}")
    return fields
