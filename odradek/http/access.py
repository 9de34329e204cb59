"""The rules of the HTTP port, by a request's head: they are applied before its path is looked up and its body is read.

1. A request with an ``Origin`` that is not this port's own comes from a web page elsewhere: 403.
2. A request with ``Authorization: Bearer TOKEN`` may ask everything.
3. The metrics have a rule of their own, since a scraper must not hold the token that can stop the broker. They are open, or need
   the metrics token if there is one. That token opens nothing else.
4. Without a token, only the ``OPEN`` paths may be asked. All else is 401, whether it exists or not, and a line in the log, up to
   a line limit.
5. Such a request must call the broker by one of its names, so that a page whose name was bound to this address cannot read it
   (DNS rebinding): 403. Those are IP addresses, names without a dot, and the names that the broker's configs mention.

A body that the application has not read is left. If it is large, or not sent yet, the connection is closed after the response.
"""

from __future__ import annotations

import json
from hmac import compare_digest
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from odradek.common.logging import LineLimit, log
from odradek.timing.system_clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    AsgiApp = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

METRICS_PATH: Final = "/metrics"
OPEN: Final = ("/", "/ready", "/openapi.json")
# The page is at "/", and below this. It asks its users for a login by itself.
PAGE_PREFIX: Final = "/page"
MOST_HEAD_BYTES: Final = 16 * 1024
# A body of so many bytes may be left unread.
SMALL_BYTES: Final = 64 * 1024
_READING_METHODS: Final = ("GET", "HEAD")
_FORBIDDEN: Final = 403
_UNAUTHORIZED: Final = 401
_HEAD_TOO_LARGE: Final = 431
_FAILED: Final = 500
_HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
)


class Refusal(Exception):
    """A refused request. ``status`` is the status of its answer, ``headers`` are more of its headers."""

    def __init__(self, status: int, error: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(error)
        self.status = status
        self.headers = headers


class Access(NamedTuple):
    """The rules: the token, the metrics token, and the broker's names beside addresses and ``localhost``."""

    token: str
    metrics_token: str | None = None
    hosts: frozenset[str] = frozenset()
    has_page: bool = False

    def __repr__(self) -> str:
        """Return the rules without the tokens."""
        return f"Access(hosts={sorted(self.hosts)})"

    def is_open(self, method: str, path: str) -> bool:
        """Return whether the request needs no token."""
        if self.has_page and (path == "/" or path.startswith(f"{PAGE_PREFIX}/")):
            return True
        return method in _READING_METHODS and (path in OPEN or (path == METRICS_PATH and self.metrics_token is None))

    def is_admitted(self, headers: dict[bytes, bytes]) -> bool:
        """Return whether the request has the token."""
        return _has_token(headers, self.token)

    def is_scrape(self, method: str, path: str, headers: dict[bytes, bytes]) -> bool:
        """Return whether the request asks for the metrics, with their token."""
        if self.metrics_token is None or method not in _READING_METHODS or path != METRICS_PATH:
            return False
        return _has_token(headers, self.metrics_token)

    def check_origin(self, headers: dict[bytes, bytes], scheme: str) -> None:
        """Raise Refusal for a request of a web page that is not this port's."""
        origin = headers.get(b"origin")
        if origin is not None and origin.lower() != f"{scheme}://".encode() + headers.get(b"host", b"").lower():
            raise Refusal(_FORBIDDEN, f"a page of {origin.decode('latin-1')} may not ask this broker")

    def check_host(self, headers: dict[bytes, bytes]) -> None:
        """Raise Refusal if the request calls the broker by a name that may be anybody's."""
        named = headers.get(b"host")
        if named is not None and not self._is_own(_host_of(named.decode("latin-1"))):
            text = named.decode("latin-1")
            raise Refusal(
                _FORBIDDEN,
                f"{text!r} is not a name of this broker: send the token, use its IP address or localhost,"
                " or name it in advertised.listeners",
            )

    def _is_own(self, host: str) -> bool:
        if host in self.hosts or _is_address(host):
            return True
        return ":" not in host and ("." not in host.rstrip(".") or host.endswith(".localhost"))


def _has_token(headers: dict[bytes, bytes], token: str) -> bool:
    return compare_digest(headers.get(b"authorization", b""), b"Bearer " + token.encode())


def _host_of(named: str) -> str:
    """Return the host of a Host header in lower case, without the port."""
    try:
        return urlsplit(f"//{named}").hostname or ""
    except ValueError:
        return named


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


class Gate:
    """The ASGI application in front of ``app``. It notes in the request's state whether it is admitted."""

    def __init__(self, app: AsgiApp, access: Access) -> None:
        self._app = app
        self._access = access
        self._line_limit = LineLimit(SystemClock())

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on. See ASGI."""
        if scope["type"] != "http":
            return
        exchange = _Exchange(scope, receive, send)
        try:
            self._check(scope)
            await self._app(scope, exchange.receive, exchange.send)
        except Refusal as refusal:
            await exchange.refuse(refusal)
        except Exception as error:  # noqa: BLE001  a fault of ours ends the request, not the broker
            log.error("an HTTP request failed", error, route=f"{scope['method']} {scope['path']}")
            await exchange.refuse(Refusal(_FAILED, f"{type(error).__name__}: the broker's log says more"))

    def _check(self, scope: MutableMapping[str, Any]) -> None:
        # h11 has no limit for a head that arrives at once.
        if len(scope["path"]) + sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > MOST_HEAD_BYTES:
            raise Refusal(_HEAD_TOO_LARGE, f"a head has {MOST_HEAD_BYTES} bytes at most", (("Connection", "close"),))
        headers: dict[bytes, bytes] = dict(scope["headers"])
        self._access.check_origin(headers, scope["scheme"])
        if self._access.is_admitted(headers):
            scope["state"]["is_admitted"] = True
            return
        if self._access.is_scrape(scope["method"], scope["path"], headers):
            return
        if not self._access.is_open(scope["method"], scope["path"]):
            self._log_refusal(scope, "its token is wrong" if b"authorization" in headers else "it has no token")
            reason = "the token is missing or wrong: send Authorization: Bearer TOKEN; if none was set, the start printed one"
            raise Refusal(_UNAUTHORIZED, reason, (("WWW-Authenticate", "Bearer"),))
        self._access.check_host(headers)

    def _log_refusal(self, scope: MutableMapping[str, Any], cause: str) -> None:
        peer = (scope["client"] or ("", 0))[0]
        extra_fields = self._line_limit.admit((peer, cause))
        if extra_fields is not None:
            log.warn("HTTP request refused", peer=peer, cause=cause, **extra_fields)


class _Exchange:
    """One request and its response."""

    def __init__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        self._headers: dict[bytes, bytes] = dict(scope["headers"])
        # The connection reads it when the request is over.
        scope["state"]["is_admitted"] = False
        self._receive = receive
        self._send = send
        self._has_begun = False
        self._may_leave_body = self._has_small_body()

    async def receive(self) -> Message:
        """Return the next part of the body."""
        message = await self._receive()
        if not message.get("more_body", False):
            self._may_leave_body = True
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the response, with the headers that every response has."""
        if message["type"] == "http.response.start":
            self._has_begun = True
            own = list(message.get("headers", ()))
            # The page's files may be kept, and a report needs another policy than the page.
            message["headers"] = [*own, *(each for each in _HEADERS if each[0] not in dict(own))]
            if not self._may_leave_body:
                # After an unread body, the next request could not be found.
                message["headers"].append((b"connection", b"close"))
        await self._send(message)

    async def refuse(self, refusal: Refusal) -> None:
        """Answer with a refusal, if no answer has begun."""
        if self._has_begun:
            return
        body = json.dumps({"error": str(refusal)}).encode() + b"\n"
        headers = [(name.lower().encode(), value.encode()) for name, value in refusal.headers]
        headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await self.send({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    def _has_small_body(self) -> bool:
        # h11 has checked that it is a number.
        size = int(self._headers.get(b"content-length", b"0"))
        is_sent = b"expect" not in self._headers and b"transfer-encoding" not in self._headers
        return is_sent and size <= SMALL_BYTES
