"""The claims of OAUTHBEARER tokens, checked by Kafka's rules.

A token is a JWT: header, claims and signature in base64url, separated by dots. ``bearer_configs`` verifies the signature. As in
Kafka there are two sets of rules: OAuthBearerValidatorCallbackHandler's for signed tokens, and
OAuthBearerUnsecuredValidatorCallbackHandler's for unsigned ones.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

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
    """The requirements for a token. ``skew_ms`` is the tolerated clock difference."""

    subject_claim: str = "sub"
    scope_claim: str = "scope"
    skew_ms: int = 0
    audiences: tuple[str, ...] = ()
    issuer: str | None = None
    required_scope: tuple[str, ...] = ()


class Parts(NamedTuple):
    """A token's header and claims, not verified yet, and whether the token has a signature."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    is_signed: bool


def take_apart(token: str) -> Parts:
    """Split a JWT into its parts. Raises InvalidToken for any other text."""
    parts = token.split(".")
    if len(parts) != _PARTS:
        raise InvalidToken("it is not a JWT")
    return Parts(_object(parts[0]), _object(parts[1]), bool(parts[2]))


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
    if (audience is not None or rules.audiences) and not found & set(rules.audiences):
        raise InvalidToken("it is for another audience (sasl.oauthbearer.expected.audience)")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise InvalidToken("it has another issuer (sasl.oauthbearer.expected.issuer)")
    _scopes(claims, rules.scope_claim)
    return Token(_subject(claims, rules.subject_claim).strip(), expires_ms)


def check_unsecured(parts: Parts, rules: Rules, now_ms: int) -> Token:
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
