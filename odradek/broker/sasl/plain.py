"""PLAIN (RFC 4616): a user name and a password, as they are.

    message   [authorization id] NUL user name NUL password        UTF-8

The users are in the listener's JAAS line, ``user_NAME="PASSWORD"``, as Kafka's PlainLoginModule has them. Kafka's class is
PlainSaslServer.
"""

from collections.abc import Mapping
from hmac import compare_digest

from odradek.broker.sasl.mechanism import AuthenticationFailed

_USER_OPTION = "user_"
_TOKENS = 3
_INVALID = "Authentication failed: Invalid username or password"


def plain_users(options: Mapping[str, str]) -> dict[str, bytes]:
    """The passwords of a JAAS line's users."""
    return {
        name.removeprefix(_USER_OPTION): password.encode() for name, password in options.items() if name.startswith(_USER_OPTION)
    }


class PlainServer:
    """Part of ``mechanism.SaslServer``: ``users`` are their passwords by name."""

    __slots__ = ("_users", "is_complete", "user")

    by_token = False
    expires_ms = None
    refusal = None

    def __init__(self, users: Mapping[str, bytes]) -> None:
        self._users = users
        self.is_complete = False
        self.user = ""

    def evaluate(self, token: bytes) -> bytes:
        """Part of SaslServer."""
        # As with Java's String: what is no UTF-8 is another character, and so another password.
        tokens = token.decode(errors="replace").split("\0", _TOKENS)
        if len(tokens) != _TOKENS:
            raise _told(f"Invalid SASL/PLAIN response: expected {_TOKENS} tokens, got {len(tokens)}")
        authorization_id, user, password = tokens
        if not user:
            raise _told("Authentication failed: username not specified")
        if not password:
            raise _told("Authentication failed: password not specified", user)
        known = self._users.get(user)
        if known is None:
            raise AuthenticationFailed("there is no such user", told=_INVALID, user=user)
        if not compare_digest(known, password.encode()):
            raise AuthenticationFailed("the password is wrong", told=_INVALID, user=user)
        if authorization_id and authorization_id != user:
            raise _told("Authentication failed: Client requested an authorization id that is different from username", user)
        self.user = user
        self.is_complete = True
        return b""


def _told(cause: str, user: str | None = None) -> AuthenticationFailed:
    return AuthenticationFailed(cause, told=cause, user=user)
