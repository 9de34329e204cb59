"""The page as an ASGI application: its views, files, events, and changes.

/                 the overview
/page/VIEW        another view; its query says of which topic, group and so on
/page/live        a view's events: the view's query, and ``view``
/page/do/CHANGE   POST: a change, once it is confirmed
/page/login       the form for user and password, where the broker's listener wants a login
/page/logout      POST: ends the session
/page/token       POST: the control API's token, for the levers
/page/file/NAME   what a browser saves or fetches: a record, a request, the pipeline's report
/page/static/NAME the style sheet and the script
"""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, asynccontextmanager
from hmac import compare_digest
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response

from odradek import __version__
from odradek.client.api import ClientError
from odradek.common.logging import LineLimit, log
from odradek.http.access import Refusal
from odradek.http.control.api import body_size, read_body
from odradek.page.actions import ActionFailed
from odradek.page.changes import CHANGES
from odradek.page.facts.source import Denied, FactError, Missing, Unavailable
from odradek.page.files import FILES
from odradek.page.live import Feeds, Rendered, event
from odradek.page.render import STATIC, Templates, url
from odradek.page.sessions import Sessions, cookie, cookie_name
from odradek.page.users import Users, is_login_refused, page_listener
from odradek.page.views import Call, Query
from odradek.page.views.registry import VIEWS
from odradek.page.watch import Watch
from odradek.testing.in_process import NotRunning
from odradek.timing.system_clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.types import Receive, Scope, Send

    from odradek.http.control.route import ControlObjects
    from odradek.page.sessions import Session
    from odradek.page.views import View
    from odradek.testing.threaded import Broker

MOST_FORM_BYTES: Final = 8 * 1024 * 1024
_MOST_FIELDS: Final = 2_000
# A page that was read keeps the watch for so long: its events begin in this time.
_WATCHED_S: Final = 5.0
_KEPT: Final = {"Cache-Control": "public, max-age=31536000, immutable"}
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HTML: Final = "text/html"


class PageSite:
    """The page of one broker. ``held`` are the control API's objects, ``token`` is its token. Loop thread only."""

    def __init__(self, broker: Broker, held: ControlObjects, token: str, *, is_read_only: bool = False) -> None:
        self._broker = broker
        self._held = held
        self._token = token
        self._is_read_only = is_read_only
        clock = SystemClock()
        self._watch = Watch(broker)
        self._sessions = Sessions(clock)
        self._users = Users(broker, self._watch)
        self._feeds = Feeds(self._watch, clock)
        self._line_limit = LineLimit(clock)
        # It stands for the session's CSRF token in parts that sessions share.
        self._csrf_mark = token_hex(16)
        self._templates = Templates(version=__version__, csrf=self._csrf_mark, is_read_only=is_read_only)
        self._answers: dict[str, Callable[[Request, Session], Awaitable[Response]]] = {
            "login": self._log_in,
            "logout": self._log_out,
            "token": self._take_token,
        }

    async def close(self) -> None:
        """End the events, and close the clients."""
        await self._feeds.close()
        await self._users.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. See ASGI."""
        request = Request(scope, receive)
        first, _, rest = request.url.path.removeprefix("/page").strip("/").partition("/")
        if first == "static":
            await _static(rest)(scope, receive, send)
            return
        session = self._sessions.of(request)
        if first == "live":
            await self._live(request, session, send)
            return
        try:
            answer = await self._answer(request, session, first, rest)
        except NotRunning:
            answer = await self._problem(request, session, Unavailable("the broker is not running"))
        except FactError as error:
            answer = await self._problem(request, session, error)
        await answer(scope, receive, send)

    async def _answer(self, request: Request, session: Session, first: str, rest: str) -> Response:
        if request.method == "GET" and _is_from_elsewhere(request):
            # A strict cookie does not come along with a link from another site. The browser asks again, from here.
            return Response('<!doctype html><meta http-equiv="refresh" content="0">', media_type=_HTML)
        if request.method not in ("GET", "HEAD", "POST"):
            raise Refusal(405, f"the page takes GET and POST, not {request.method}", (("Allow", "GET, HEAD, POST"),))
        if request.method == "POST":
            return await self._post(request, session, first, rest)
        if first == "login":
            return await self._page(request, session, "login", {"problem": "", "to": request.query_params.get("to", "/")})
        if self._wants_login(session):
            if first == "file":
                raise Refusal(401, "log in first, at /page/login")
            return Response(status_code=303, headers={"Location": _login_url(request)})
        query = Query(_fields(request.url.query))
        if first == "file":
            if rest not in FILES:
                raise Missing("there is no such file")
            async with self._call(session, query) as call:
                return await FILES[rest](call)
        view = VIEWS.get(first or "overview")
        if view is None or rest:
            raise Missing("there is no such page")
        self._watch_for_a_while()
        async with self._call(session, query) as call:
            values = await view.load(call)
        return await self._page(request, session, view.name, values, view)

    async def _post(self, request: Request, session: Session, first: str, rest: str) -> Response:
        if body_size(request, MOST_FORM_BYTES) == 0:
            raise Refusal(400, "the form is empty")
        try:
            form = Query(_fields((await read_body(request)).decode(errors="replace")))
        except ValueError as error:
            raise Refusal(400, f"the form has more than {_MOST_FIELDS} fields") from error
        if not session.has_csrf(form.text("csrf")):
            raise Refusal(403, "the form is not of this session: load the page again")
        request.state.form = form
        if first in self._answers:
            return await self._answers[first](request, session)
        if first != "do" or rest not in CHANGES:
            raise Missing("there is no such change")
        return await self._change(request, session, rest, form)

    async def _change(self, request: Request, session: Session, name: str, form: Query) -> Response:
        if self._is_read_only:
            raise Refusal(403, "this page is read-only: odradek serve runs with --page-read-only")
        if self._wants_login(session):
            raise Refusal(401, "log in first, at /page/login")
        change = CHANGES[name]
        if change.needs_token and not session.has_token:
            raise Refusal(403, "this needs the control API's token: give it on the page of the levers")
        if form.text("confirmed") != "yes":
            hidden = {"csrf", "back", "confirmed"}
            fields = [(field, value) for field, value in form.items() if field not in hidden]
            asked: dict[str, Any] = {"change": name, "title": change.title, "fields": fields, "back": _back(form)}
            return await self._page(request, session, "confirm", asked)
        status, text, location = 200, "", ""
        try:
            async with self._call(session, form) as call:
                outcome = await change.make(call)
            text, location = outcome.text, outcome.location
        except (ActionFailed, FactError) as error:
            status, text = 422, error.reason
        if "application/json" in request.headers.get("accept", ""):
            told = {"text": text, "location": location, "failed": status != 200}
            return Response(json.dumps(told), status, media_type="application/json")
        values = {"text": text, "failed": status != 200, "back": location or _back(form)}
        return await self._page(request, session, "done", values, status=status)

    async def _log_in(self, request: Request, session: Session) -> Response:
        form: Query = request.state.form
        user, to = form.text("user"), _local(form.text("to"))
        try:
            login = await self._users.log_in(user, form.text("password"))
        except ClientError as error:
            status = 403 if is_login_refused(error) else 503
            self._log_refusal(request, "login", user)
            return await self._page(request, session, "login", {"problem": error.reason, "to": to}, status=status)
        kept = self._sessions.keep(session, login=login, has_token=session.has_token)
        return Response(status_code=303, headers={"Location": to, "Set-Cookie": cookie(request, kept)})

    async def _log_out(self, request: Request, session: Session) -> Response:
        new = self._sessions.drop(session)
        return Response(status_code=303, headers={"Location": "/", "Set-Cookie": cookie(request, new)})

    async def _take_token(self, request: Request, session: Session) -> Response:
        form: Query = request.state.form
        if self._is_read_only or not compare_digest(form.text("token").strip().encode(), self._token.encode()):
            self._log_refusal(request, "token", "")
            values = {"levers": None, "problem": "That is not the token of this broker's control API."}
            return await self._page(request, session, "levers", values, VIEWS["levers"], status=403)
        kept = self._sessions.keep(session, login=session.login, has_token=True)
        return Response(status_code=303, headers={"Location": "/page/levers", "Set-Cookie": cookie(request, kept)})

    async def _live(self, request: Request, session: Session, send: Send) -> None:
        """Send events until the browser is gone."""
        headers = [(b"content-type", b"text/event-stream")]
        if cookie_name(request) not in request.cookies:
            headers.append((b"set-cookie", cookie(request, session).encode()))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        sending = asyncio.ensure_future(self._send_events(request, session, send))
        leaving = asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
        await send({"type": "http.response.body"})

    async def _send_events(self, request: Request, session: Session, send: Send) -> None:
        fields = _fields(request.url.query)
        view = VIEWS.get((fields.pop("view", None) or [""])[-1])
        query = Query(fields)
        if view is None:
            return
        if self._wants_login(session):
            await send({"type": "http.response.body", "body": event("login"), "more_body": True})
            return
        key = view.name, query.key(), session.login, session.has_token
        memory: dict[str, Any] = {}
        found = self._feeds.events(key, lambda: self._parts(session, view, query, memory), needs_timeline=view.needs_timeline)
        async with aclosing(found):
            async for each in found:
                body = each.replace(self._csrf_mark.encode(), session.csrf.encode())
                await send({"type": "http.response.body", "body": body, "more_body": True})

    async def _parts(self, session: Session, view: View, query: Query, memory: dict[str, Any]) -> Rendered:
        async with self._call(session, query, memory) as call:
            values = await view.load(call)
        parts = await self._templates.fragments(view.name, {**self._shared(session), **values})
        return Rendered(parts, values.get("is_unfinished", False))

    def _shared(self, session: Session) -> dict[str, Any]:
        """Return the values that every template has."""
        return {
            "user": session.login.user if session.login is not None else "",
            "is_logged_in": session.login is not None,
            "has_token": session.has_token,
            "address": self._broker.bootstrap_servers,
        }

    @asynccontextmanager
    async def _call(self, session: Session, query: Query, memory: dict[str, Any] | None = None) -> AsyncIterator[Call]:
        """Yield what a view or a change gets. Raises FactError, NotRunning."""
        call = Call(None, query, self._broker, self._held, session.has_token, {} if memory is None else memory)
        if not self._broker.is_running:
            yield call
            return
        async with self._users.source(session.login) as source:
            yield call._replace(running_source=source)

    async def _page(
        self,
        request: Request,
        session: Session,
        template: str,
        values: dict[str, Any],
        view: View | None = None,
        *,
        problem: str = "",
        status: int = 200,
    ) -> Response:
        """Return a whole page, and the session's cookie if the browser has none."""
        here, place = ("", "") if view is None else (view.name, view.place or view.name)
        shown = {**self._shared(session), "here": here, "place": place, "shown_problem": problem, **values}
        html = (await self._templates.page(template, shown)).replace(self._csrf_mark, session.csrf)
        answer = Response(html, status, media_type=_HTML)
        if request.cookies.get(cookie_name(request)) != session.id:
            answer.headers.append("Set-Cookie", cookie(request, session))
        return answer

    async def _problem(self, request: Request, session: Session, error: FactError) -> Response:
        """Return the page that says why there is none. A page that may come later loads itself again then."""
        if is_login_refused(error):
            new = self._sessions.drop(session)
            return Response(status_code=303, headers={"Location": _login_url(request), "Set-Cookie": cookie(request, new)})
        status = 404 if isinstance(error, Missing) else 403 if isinstance(error, Denied) else 503
        view = VIEWS.get(request.url.path.removeprefix("/page").strip("/") or "overview")
        return await self._page(request, session, "problem", {}, view, problem=error.reason, status=status)

    def _wants_login(self, session: Session) -> bool:
        """Return whether the broker's listener wants a login that the session lacks. A stopped broker shows nothing anyway."""
        return session.login is None and self._broker.is_running and bool(page_listener(self._broker).mechanisms)

    def _watch_for_a_while(self) -> None:
        self._watch.enter()
        asyncio.get_running_loop().call_later(_WATCHED_S, self._watch.leave)

    def _log_refusal(self, request: Request, what: str, user: str) -> None:
        peer = request.client.host if request.client is not None else ""
        extra_fields = self._line_limit.admit((what, peer))
        if extra_fields is not None:
            log.warn("page refused", what=what, peer=peer, user=user, **extra_fields)


def _fields(text: str) -> dict[str, list[str]]:
    """Return the fields of a query or a form, each with its values. Raises ValueError."""
    return parse_qs(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS)


def _static(name: str) -> Response:
    path = STATIC / name
    if path.suffix not in _TYPES or path.parent != STATIC or not path.is_file():
        raise Refusal(404, "the page has no such file")
    return Response(path.read_bytes(), headers=_KEPT, media_type=_TYPES[path.suffix])


async def _gone(request: Request) -> None:
    """Wait until the browser has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _is_from_elsewhere(request: Request) -> bool:
    return request.headers.get("sec-fetch-site") in ("cross-site", "same-site") and cookie_name(request) not in request.cookies


def _local(to: str) -> str:
    """Return an address of this page, and no other."""
    return to if to == "/" or to.startswith(("/page/", "/?")) else "/"


def _back(form: Query) -> str:
    return _local(form.text("back"))


def _login_url(request: Request) -> str:
    query = f"?{request.url.query}" if request.url.query else ""
    return url("login", to=f"{request.url.path}{query}")
