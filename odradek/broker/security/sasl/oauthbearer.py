"""OAUTHBEARER (RFC 7628): the client presents a token from a third party, and its claims are checked by Kafka's rules.

    client    n,[a=authorization id],^Aauth=Bearer TOKEN^A[name=value^A...]^A        ^A is the byte 1
    broker    nothing: the client is let in; or {"status":"invalid_token"}
    client    ^A, and then the failure follows

Extensions (the names and values) are accepted and ignored, as by Kafka's own handlers. Kafka's class is OAuthBearerSaslServer.

A token is a JWT: header, claims and signature in base64url, separated by dots. ``bearer_configs`` verifies the signature. As in
Kafka there are two sets of rules: OAuthBearerValidatorCallbackHandler's for signed tokens, and
OAuthBearerUnsecuredValidatorCallbackHandler's for unsigned ones.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from odradek.broker.security.sasl.mechanism import AuthenticationFailed

_PARTS = 3
_MS = 1_000


class InvalidToken(Exception):
    """An invalid token. ``cause`` is for the log. The client gets ``status``, and the required ``scope``."""

    def __init__(self, cause: str, *, status: str = "invalid_token", scope: str | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.status = status
        self.scope = scope


class Token(NamedTuple):
    """The user of a valid token, and the token's expiry in wall time."""

    user: str
    expires_ms: int


class Rules(NamedTuple):
    """The requirements for a token. ``skew_ms`` is the tolerated clock difference. Without audiences or issuer, any will do."""

    subject_claim: str = "sub"
    scope_claim: str = "scope"
    skew_ms: int = 0
    audiences: tuple[str, ...] = ()
    issuer: str | None = None
    required_scope: tuple[str, ...] = ()


class ParsedToken(NamedTuple):
    """A token's header and claims, not verified yet, and whether the token has a signature."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    is_signed: bool


def parse_token(token: str) -> ParsedToken:
    """Split a JWT into its parts. Raises InvalidToken for any other text."""
    parts = token.split(".")
    if len(parts) != _PARTS:
        raise InvalidToken("it is not a JWT")
    return ParsedToken(_object(parts[0]), _object(parts[1]), bool(parts[2]))


def check_signed(claims: Mapping[str, Any], rules: Rules, now_ms: int) -> Token:
    """Check the claims of a token with a valid signature. Raises InvalidToken."""
    expires_ms = _required_ms(claims, "exp")
    _required_ms(claims, "iat")
    if expires_ms <= now_ms - rules.skew_ms:
        raise InvalidToken("it has expired")
    if (_time_ms(claims, "nbf") or 0) > now_ms + rules.skew_ms:
        raise InvalidToken("it is not valid yet")
    audience = claims.get("aud")
    listed = audience if isinstance(audience, list) else [audience]
    found = {each for each in listed if isinstance(each, str)}
    if rules.audiences and not found & set(rules.audiences):
        raise InvalidToken("it is for another audience (sasl.oauthbearer.expected.audience)")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise InvalidToken("it has another issuer (sasl.oauthbearer.expected.issuer)")
    _scopes(claims, rules.scope_claim)
    return Token(_subject(claims, rules.subject_claim).strip(), expires_ms)


def check_unsecured(parts: ParsedToken, rules: Rules, now_ms: int) -> Token:
    """Check an unsigned token. Raises InvalidToken."""
    if parts.header.get("alg") != "none" or parts.is_signed:
        raise InvalidToken("it is signed, but only unsecured tokens are accepted")
    claims = parts.claims
    user = _subject(claims, rules.subject_claim)
    expires_ms = _required_ms(claims, "exp")
    issued_ms = _time_ms(claims, "iat")
    if issued_ms is not None and issued_ms > now_ms + rules.skew_ms:
        raise InvalidToken("it was issued in the future")
    if expires_ms <= now_ms - rules.skew_ms:
        raise InvalidToken("it has expired")
    if issued_ms is not None and expires_ms <= issued_ms:
        raise InvalidToken("it expires before it is issued")
    missing = [scope for scope in rules.required_scope if scope not in _scopes(claims, rules.scope_claim, split=True)]
    if missing:
        wanted = f"[{', '.join(rules.required_scope)}]"
        raise InvalidToken(f"it lacks the scope {missing[0]}", status="insufficient_scope", scope=wanted)
    return Token(user, expires_ms)


def subject_of(claims: Mapping[str, Any], name: str) -> str | None:
    """Return the subject that a token claims; None if the claim is no string."""
    found = claims.get(name)
    return found if isinstance(found, str) else None


def _object(part: str) -> Mapping[str, Any]:
    try:
        found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise InvalidToken("it is not a JWT") from error
    if not isinstance(found, dict):
        raise InvalidToken("it is not a JWT")
    return found


def _required_ms(claims: Mapping[str, Any], name: str) -> int:
    found = _time_ms(claims, name)
    if found is None:
        raise InvalidToken(f"it has no {name}")
    return found


def _time_ms(claims: Mapping[str, Any], name: str) -> int | None:
    found = claims.get(name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < 2**53:
        raise InvalidToken(f"its {name} is not a time")
    return int(found * _MS)


def _subject(claims: Mapping[str, Any], name: str) -> str:
    found = claims.get(name)
    if not isinstance(found, str) or not found.strip():
        raise InvalidToken(f"it has no {name}")
    return found


def _scopes(claims: Mapping[str, Any], name: str, *, split: bool = False) -> list[str]:
    found = claims.get(name)
    if isinstance(found, str):
        found = found.split() if split else [found]
    listed: list[object] = found if isinstance(found, list) else []
    scopes = [scope for scope in listed if isinstance(scope, str) and scope.strip()]
    if len(set(scopes)) < len(listed):
        raise InvalidToken(f"its {name} is not a list of scopes")
    return scopes


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
