"""Carries out the requests of the control API on the broker's loop, and turns the kit's refusals into statuses.

The bodies of all requests under way share ``MOST_BYTES``. A body that finds no room is answered with 503.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from odradek.common.config.definitions import InvalidConfig
from odradek.common.logging import log
from odradek.http.access import Refusal
from odradek.http.control import ROUTES
from odradek.http.control.route import BadRequest, ControlCall, ControlObjects, Json, Missing, Route, check
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.testing.in_process import NotRunning
from odradek.testing.misuse import is_of_the_kit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from starlette.requests import Request

    from odradek.testing.faults.vocabulary import FaultKeywords
    from odradek.testing.threaded import Broker

MOST_BYTES: Final = 64 * 1024 * 1024
# The time a client may be silent in the middle of its body.
BODY_SILENCE_S: Final = 60.0
FORK_OF: Final = "of_fork"
# A surrogate half, escaped or in UTF-8.
_MAY_BE_HALVES = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
_NOT_FOUND: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
}


class ControlApi:
    """The requests to one broker, and to the forks of its snapshots. Loop thread only."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        # Shared with the page's levers.
        self.held = ControlObjects()
        self._room_bytes = MOST_BYTES

    def add_faults(self, rules: Iterable[FaultKeywords]) -> None:
        """Add these rules to the broker, with numbers, as if a client had added them."""
        for rule in rules:
            self.held.faults[self.broker][self.held.new_id()] = self.broker.faults.add_checked(rule)

    async def close(self) -> None:
        """Stop the forks."""
        await self.held.close()

    async def answer(self, routes: Mapping[str, Route], request: Request) -> tuple[int, Json]:
        """Return status and answer of an admitted request. ``routes`` are those of its path, by method. Raises Refusal."""
        try:
            return 200, await self._done(routes, request)
        except BadRequest as error:
            return 400, {"error": str(error)}
        except Missing as error:
            return 404, {"error": str(error)}
        except NotRunning:
            return 409, {"error": "the broker is not running: POST /v1/broker/start starts it"}
        except (AssertionError, OSError, RuntimeError) as error:
            return 409, {"error": str(error)}
        except KafkaError as error:
            return 404 if error.code in _NOT_FOUND else 422, {"error": error.reason, "code": ErrorCode(error.code).name}
        except InvalidConfig as error:
            return 400, {"error": str(error)}
        except Refusal:
            raise
        except Exception as error:  # noqa: BLE001  the kit's own refusals are the client's mistakes; the rest is a fault of ours
            if isinstance(error, TypeError | ValueError) and is_of_the_kit(error):
                return 400, {"error": str(error)}
            log.error("a control request failed", error, route=f"{request.method} {request.url.path}")
            return 500, {"error": f"{type(error).__name__}: the broker's log says more"}

    async def _done(self, routes: Mapping[str, Route], request: Request) -> Json:
        route = routes.get(request.method)
        if route is None:
            allowed = ", ".join(routes)
            reason = f"{request.url.path} allows {allowed}, not {request.method}"
            raise Refusal(405, reason, (("Allow", allowed),))
        named = dict(request.path_params)
        fork = named.pop(FORK_OF, None)
        broker = self.broker if fork is None else self.held.fork(fork)
        query = dict(request.query_params)
        check(route.query, query, f"the query of {route.path}")
        with self._room_for(request) as size:
            body = b"" if not size else await read_body(request)
            answer: Json = await route.handle(ControlCall(broker, self.held, named, query, _parsed(route, body)))
        return answer

    @contextmanager
    def _room_for(self, request: Request) -> Iterator[int]:
        """Reserve the room for a body. Yields its size. Raises Refusal."""
        size = body_size(request, MOST_BYTES)
        if size > self._room_bytes:
            reason = f"other requests' bodies take the room, {MOST_BYTES} bytes: try again"
            raise Refusal(503, reason, (("Retry-After", "1"),))
        self._room_bytes -= size
        try:
            yield size
        finally:
            self._room_bytes += size


def body_size(request: Request, most_bytes: int) -> int:
    """Return the size of the body. Raises Refusal if it is unknown or too large."""
    if "transfer-encoding" in request.headers:
        raise Refusal(411, f"a body has a Content-Length, of {most_bytes} at most")
    size = int(request.headers.get("content-length", "0"))
    if size > most_bytes:
        raise Refusal(413, f"a body has a Content-Length, of {most_bytes} at most")
    return size


async def read_body(request: Request) -> bytes:
    """Return the body. Raises Refusal if the client leaves or falls silent in the middle of it."""
    parts = []
    stream = request.receive
    while True:
        try:
            async with asyncio.timeout(BODY_SILENCE_S):
                message = await stream()
        except TimeoutError as error:
            raise Refusal(408, f"nothing of the body has come for {BODY_SILENCE_S:.0f} s") from error
        if message["type"] == "http.disconnect":
            raise Refusal(408, "the body has not come to its end")
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _parsed(route: Route, body: bytes) -> Json:
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


def by_path() -> dict[str, dict[str, Route]]:
    """Return the routes of each path, by method."""
    found: dict[str, dict[str, Route]] = {}
    for route in ROUTES:
        found.setdefault(route.path, {})[route.method] = route
    return found
