"""The application of the HTTP port: its paths, as ASGI.

/              the page; without one a text: the version, the broker's address, the other paths
/page/...      the page's views, files and actions
/ready         200 when clients can connect
/metrics       the metrics, for Prometheus
/openapi.json  the description
/v1/...        the control API; of a fork, /v1/forks/NUMBER/...
"""

from __future__ import annotations

import asyncio
import json
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router

from odradek import __version__
from odradek.http.access import METRICS_PATH, PAGE_PREFIX, Access, Gate, Refusal
from odradek.http.control.api import FORK_OF, ControlApi, by_path
from odradek.http.description import PREFIX, description

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, MutableMapping

    from starlette.types import Receive, Scope, Send

    from odradek.http.access import AsgiApp
    from odradek.http.control import route

_TEXT: Final = """\
odradek {version}

Kafka          {address}
/metrics       for Prometheus
/ready         answers when clients can connect
/openapi.json  describes the control API
/v1/...        the control API: Authorization: Bearer TOKEN

The commands on a terminal: odradek --help
"""


class _Path:
    """One path that is only read."""

    def __init__(self, handle: Callable[[Request], Awaitable[Response]]) -> None:
        self._handle = handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method not in ("GET", "HEAD"):
            raise Refusal(405, f"{request.url.path} allows GET, HEAD, not {request.method}", (("Allow", "GET, HEAD"),))
        await (await self._handle(request))(scope, receive, send)


class _ControlPath:
    """One path of the control API."""

    def __init__(self, api: ControlApi, routes: Mapping[str, route.Route]) -> None:
        self._api = api
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status, answer = await self._api.answer(self._routes, Request(scope, receive))
        await _json(answer, status)(scope, receive, send)


def _json(answer: Mapping[str, Any], status: int = 200) -> Response:
    # Starlette's JSONResponse cannot write half of a surrogate pair.
    return Response(json.dumps(answer) + "\n", status, media_type="application/json")


class HttpApplication:
    """The application for one broker. ``app`` is for ``HttpPort.serve``. ``page`` answers at ``/`` and below ``/page``."""

    def __init__(self, control: ControlApi, access: Access, page: AsgiApp | None = None) -> None:
        self._control = control
        self._broker = control.broker
        paths: list[BaseRoute] = [
            Route("/", _Path(self._text) if page is None else page),
            *([] if page is None else [Mount(PAGE_PREFIX, page)]),
            Route("/ready", _Path(self._ready)),
            Route(METRICS_PATH, _Path(self._metrics)),
            Route("/openapi.json", _Path(self._openapi)),
            Mount(PREFIX, _router([*self._control_paths(""), *self._control_paths(f"/forks/{{{FORK_OF}}}")])),
        ]
        self.app = Gate(_router(paths), access._replace(has_page=page is not None))

    def _control_paths(self, prefix: str) -> list[BaseRoute]:
        # A group's id may have a slash.
        found = {path.replace("{group}", "{group:path}"): routes for path, routes in by_path().items()}
        return [Route(prefix + path, _ControlPath(self._control, routes)) for path, routes in found.items()]

    async def _text(self, _request: Request) -> Response:
        return PlainTextResponse(_TEXT.format(version=__version__, address=self._broker.bootstrap_servers))

    async def _ready(self, _request: Request) -> Response:
        await self._broker.restarted()
        is_running = self._broker.is_running
        state = {"bootstrap_servers": self._broker.bootstrap_servers, "is_running": is_running}
        return _json(state, 200 if is_running else 503)

    async def _metrics(self, request: Request) -> Response:
        if not self._broker.is_running:
            raise Refusal(503, "the broker is not running")
        # It brings the definitions of all metrics, 1.6 MB, which nobody needs who does not scrape.
        exposition: Any = await asyncio.to_thread(import_module, "odradek.broker.metrics.exposition")
        body, content_type = await exposition.scrape(self._broker.core, request.headers.get("accept", ""))
        return Response(body, headers={"Content-Type": content_type})

    async def _openapi(self, _request: Request) -> Response:
        return _json(description())


def _router(paths: list[BaseRoute]) -> Router:
    return Router(paths, redirect_slashes=False, default=_not_found)


async def _not_found(scope: MutableMapping[str, Any], _receive: Receive, _send: Send) -> None:
    raise Refusal(404, f"no such path: {scope['path']}; see /openapi.json for all paths")
