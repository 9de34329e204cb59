"""Sessions of the page's users, by a cookie.

An id is 256 random bits. The cookie is HttpOnly and SameSite=Strict. Its name has the port, since browsers share cookies among
the ports of a host. A form's CSRF token is derived from the id, so an open page survives a restart of the process. Only a session
with a login or the levers' token is kept, and gets a new id then. Others cost nothing.
"""

from __future__ import annotations

import hmac
import re
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.requests import Request

    from odradek.client.login import Login
    from odradek.timing.clock import Clock

MOST_SESSIONS: Final = 1_000
IDLE_MS: Final = 12 * 60 * 60 * 1000
_ID_BYTES: Final = 32
_ID = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


class Session:
    """A user's session. ``has_token``: the user has given the control API's token, so the levers are there."""

    __slots__ = ("has_token", "id", "login", "used_ms")

    def __init__(self, id_: str, login: Login | None = None, *, has_token: bool = False, used_ms: float = 0.0) -> None:
        self.id = id_
        self.login = login
        self.has_token = has_token
        self.used_ms = used_ms

    def __repr__(self) -> str:
        return f"Session({self.login!r}, has_token={self.has_token})"

    @property
    def csrf(self) -> str:
        """Return the token that each form of this session has."""
        return hmac.digest(self.id.encode(), b"csrf", "sha256").hex()

    def has_csrf(self, given: str) -> bool:
        """Return whether this is the token."""
        return hmac.compare_digest(given.encode(), self.csrf.encode())


class Sessions:
    """The sessions with a login or the token, at most ``MOST_SESSIONS``. The one that was used longest ago goes first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, Session] = {}

    def of(self, request: Request) -> Session:
        """Return the request's session: a kept one, or one that is nobody's."""
        id_ = request.cookies.get(cookie_name(request), "")
        session = self._kept.get(id_)
        now_ms = self._clock.monotonic_ms()
        if session is not None and now_ms - session.used_ms < IDLE_MS:
            session.used_ms = now_ms
            # The latest is last.
            self._kept[id_] = self._kept.pop(id_)
            return session
        self._kept.pop(id_, None)
        return Session(id_ if _ID.fullmatch(id_) else new_id())

    def keep(self, before: Session, *, login: Login | None, has_token: bool) -> Session:
        """Return a session with these rights and a new id, in place of ``before``."""
        self._kept.pop(before.id, None)
        session = Session(new_id(), login, has_token=has_token, used_ms=self._clock.monotonic_ms())
        while len(self._kept) >= MOST_SESSIONS:
            del self._kept[next(iter(self._kept))]
        self._kept[session.id] = session
        return session

    def drop(self, session: Session) -> Session:
        """Forget a session. Return a new one, which is nobody's."""
        self._kept.pop(session.id, None)
        return Session(new_id())


def new_id() -> str:
    """Return a new session id."""
    return token_urlsafe(_ID_BYTES)


def cookie_name(request: Request) -> str:
    """Return the name of the cookie at this port."""
    return f"odradek_{request.scope['server'][1]}"


def cookie(request: Request, session: Session) -> str:
    """Return the Set-Cookie header."""
    secure = "; Secure" if request.url.scheme == "https" else ""
    return f"{cookie_name(request)}={session.id}; Path=/; HttpOnly; SameSite=Strict{secure}"
