"""OAUTHBEARER (RFC 7628): the client presents a token from a third party.

    client    n,[a=authorization id],^Aauth=Bearer TOKEN^A[name=value^A...]^A        ^A is the byte 1
    broker    nothing: the client is let in; or {"status":"invalid_token"}
    client    ^A, and then the failure follows

Extensions (the names and values) are accepted and ignored, as by Kafka's own handlers. Kafka's class is OAuthBearerSaslServer.
"""

import json
import re
from collections.abc import Callable
from typing import Final

from odradek.broker.security.sasl.mechanism import AuthenticationFailed
from odradek.broker.security.sasl.tokens import InvalidToken, Token

_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_MESSAGE: Final = re.compile(
    rf"n,(?:a=(?P<authorization_id>{_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01", re.DOTALL
)
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")
_GO_ON: Final = b"\x01"

# Validates a token. Raises InvalidToken, or BearerRefused with the ``user`` that the token claims.
Validate = Callable[[str], Token]


class BearerRefused(InvalidToken):
    """A refused token. ``user`` is the subject that the token claims; None if it has none."""

    def __init__(self, reason: InvalidToken, user: str | None) -> None:
        super().__init__(reason.cause, status=reason.status, scope=reason.scope)
        self.user = user


class OAuthBearerServer:
    """The server's side of OAUTHBEARER (RFC 7628)."""

    __slots__ = ("_validate", "expires_ms", "is_complete", "refusal", "user")

    by_token = False

    def __init__(self, validate: Validate) -> None:
        self._validate = validate
        self.refusal: AuthenticationFailed | None = None
        self.is_complete = False
        self.user = ""
        self.expires_ms: int | None = None

    def evaluate(self, token: bytes) -> bytes:
        """Validate the bearer token in the client's message. Raises AuthenticationFailed."""
        if token == _GO_ON and self.refusal is not None:
            raise self.refusal
        self.refusal = None
        authorization_id, bearer_token = _read(token)
        try:
            found = self._validate(bearer_token)
        except InvalidToken as error:
            told: dict[str, str] = {"status": error.status}
            if error.scope is not None:
                told["scope"] = error.scope
            # In Kafka's format.
            text = json.dumps(told, separators=(", ", ":"))
            user = error.user if isinstance(error, BearerRefused) else None
            self.refusal = AuthenticationFailed(f"the token was refused: {error.cause}", told=text, user=user)
            return text.encode()
        if authorization_id not in (None, found.user):
            message = (
                f"Authentication failed: Client requested an authorization id ({authorization_id}) that is different"
                f" from the token's principal name ({found.user})"
            )
            cause = "the authorization id differs from the token's principal"
            raise AuthenticationFailed(cause, told=message, user=found.user)
        self.user, self.expires_ms = found
        self.is_complete = True
        return b""


def _read(token: bytes) -> tuple[str | None, str]:
    """Return the authorization id and the bearer token of a first message. Raises AuthenticationFailed."""
    match = _MESSAGE.fullmatch(token.decode(errors="replace"))
    if match is None:
        raise AuthenticationFailed("the client's first message is not an OAUTHBEARER message")
    pairs = dict(pair.split("=", 1) for pair in match["pairs"].split("\x01") if pair)
    auth = _AUTH.fullmatch(pairs.get("auth", ""))
    if auth is None or auth["scheme"].lower() != "bearer":
        raise AuthenticationFailed("the client's first message has no bearer token")
    return match["authorization_id"], auth["token"]
