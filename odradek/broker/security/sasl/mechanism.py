"""The interface of a SASL mechanism, one exchange of tokens with one client; and the simplest mechanism, PLAIN.

PLAIN (RFC 4616) is a user name and a password in clear text.

    message   [authorization id] NUL user name NUL password        UTF-8

The users are in the listener's JAAS line, ``user_NAME="PASSWORD"``, as for Kafka's PlainLoginModule. Kafka's class is
PlainSaslServer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hmac import compare_digest
from typing import Protocol


class AuthenticationFailed(Exception):
    """The client's credentials are refused.

    ``told`` is the client's error message. If None, the client learns only that its credentials are invalid, since the reason
    might reveal which users exist. ``cause`` is for the broker's log. Neither contains a secret. ``user`` is the name the client
    claims.
    """

    def __init__(self, cause: str, *, told: str | None = None, user: str | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.told = told
        self.user = user


class SaslServer(Protocol):
    """One exchange with one client. The client's properties are valid once the exchange ``is_complete``."""

    @property
    def is_complete(self) -> bool:
        """Return whether the client is authenticated."""

    @property
    def user(self) -> str:
        """The client's principal name."""

    @property
    def expires_ms(self) -> int | None:
        """The expiry of the credential, in wall time; None if it never expires."""

    @property
    def by_token(self) -> bool:
        """Return whether the client used a delegation token."""

    @property
    def refusal(self) -> AuthenticationFailed | None:
        """The failure that the last token told the client, which must acknowledge it; None without one."""

    def evaluate(self, token: bytes) -> bytes:
        """Return the answer to the client's token. Raises AuthenticationFailed."""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A mechanism that a listener offers: ``begin`` makes the server's side of one exchange.

    ``max_reauth_ms`` is ``connections.max.reauth.ms``, the longest session; 0 for the lifetime of the credential.
    """

    begin: Callable[[], SaslServer]
    max_reauth_ms: int


_USER_OPTION = "user_"
_TOKENS = 3
_INVALID = "Authentication failed: Invalid username or password"


def plain_users(options: Mapping[str, str]) -> dict[str, bytes]:
    """Return the passwords of a JAAS line's users, by name."""
    return {
        name.removeprefix(_USER_OPTION): password.encode() for name, password in options.items() if name.startswith(_USER_OPTION)
    }


class PlainServer:
    """The server's side of PLAIN. ``users`` maps names to passwords."""

    __slots__ = ("_users", "is_complete", "user")

    by_token = False
    expires_ms = None
    refusal = None

    def __init__(self, users: Mapping[str, bytes]) -> None:
        self._users = users
        self.is_complete = False
        self.user = ""

    def evaluate(self, token: bytes) -> bytes:
        """Check the user and the password in the client's message."""
        # Like Java's String: invalid UTF-8 becomes a replacement character, and so another password.
        tokens = token.decode(errors="replace").split("\0", _TOKENS)
        if len(tokens) != _TOKENS:
            raise _refusal(f"Invalid SASL/PLAIN response: expected {_TOKENS} tokens, got {len(tokens)}")
        authorization_id, user, password = tokens
        if not user:
            raise _refusal("Authentication failed: username not specified")
        if not password:
            raise _refusal("Authentication failed: password not specified", user)
        known = self._users.get(user)
        if known is None:
            raise AuthenticationFailed("no such user", told=_INVALID, user=user)
        if not compare_digest(known, password.encode()):
            raise AuthenticationFailed("the password is wrong", told=_INVALID, user=user)
        if authorization_id and authorization_id != user:
            raise _refusal("Authentication failed: Client requested an authorization id that is different from username", user)
        self.user = user
        self.is_complete = True
        return b""


def _refusal(cause: str, user: str | None = None) -> AuthenticationFailed:
    return AuthenticationFailed(cause, told=cause, user=user)
