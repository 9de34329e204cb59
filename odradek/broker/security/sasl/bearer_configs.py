"""Make the token validator of OAUTHBEARER from its configs: by signing keys, or for unsigned tokens if configured.

Kafka's default is the handler that accepts unsigned tokens. Here that handler must be named, or the JAAS line must have an
``unsecured...`` option, as in Kafka's documentation.

A valid token is signed with a key of the JWKS document, or is unsigned where that is configured. It authenticates its subject.

The keys are public ones, in a JWKS document (RFC 7517) in a file or at a URL, refreshed periodically. No login waits for a fetch:
a token is checked against the loaded keys. As in Kafka, a token with an unknown key id triggers a fetch. The token is refused,
and the client's next attempt finds the new keys.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit
from urllib.request import url2pathname, urlopen

from odradek.broker.security.sasl.oauthbearer import (
    BearerRefused,
    InvalidToken,
    ParsedToken,
    Rules,
    Token,
    check_signed,
    check_unsecured,
    parse_token,
    subject_of,
)
from odradek.common.config.definitions import HIDDEN, InvalidConfig
from odradek.common.config.listener_config import OAUTHBEARER
from odradek.common.logging import log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future

    from jwt import PyJWK

    from odradek.broker.security.sasl.oauthbearer import Validate
    from odradek.common.config.listener_config import SaslConfig
    from odradek.timing.background import Background
    from odradek.timing.clock import Clock

SCHEMES: Final = ("http", "https", "file")
# The key type of an algorithm by its first two letters: RS256, PS256, ES256, EdDSA and so on.
_FAMILIES: Final = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_ALGORITHMS: Final = frozenset({*(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)), "EdDSA"})
Row: TypeAlias = dict[str, Any]
_TIMEOUT_S: Final = 10.0
_MOST_BYTES: Final = 1024 * 1024


class SigningKeys:
    """The keys at ``url``. Loop thread only, except for the fetch."""

    def __init__(
        self,
        url: str,
        *,
        refresh_ms: int,
        backoff_ms: int,
        backoff_max_ms: int,
        clock: Clock,
        background: Background,
        fetch: Callable[[str], bytes] | None = None,
    ) -> None:
        self._url = url
        self._refresh_ms = refresh_ms
        self._backoff_ms = backoff_ms
        self._backoff_max_ms = backoff_max_ms
        self._clock = clock
        self._background = background
        self._fetch = fetch or fetch_document
        self._rows: list[Row] = []
        self._is_fetching = False
        self._failures = 0
        self._fetched_ms = 0.0
        self._next_fetch_ms = 0.0

    def load(self) -> None:
        """Fetch the keys now. Raises OSError, and ValueError if the document is no JWKS document."""
        self._rows = _parsed(self._fetch(self._url))
        self._note(failed=False)

    def refresh(self) -> None:
        """Fetch the keys in another thread."""
        if self._is_fetching:
            return
        self._is_fetching = True
        self._background.run(lambda: _parsed(self._fetch(self._url)), self._fetched, name="jwks")

    def candidates(self, key_id: str | None, algorithm: str) -> list[PyJWK]:
        """Return the keys that may have signed a token with this header. Starts a fetch if one is due."""
        rows = self._rows if key_id is None else [row for row in self._rows if row.get("kid") == key_id]
        family = _FAMILIES[algorithm[:2]] if algorithm in _ALGORITHMS else None
        suitable = [row for row in rows if row["kty"] == family and row.get("alg", algorithm) == algorithm]
        found = [key for row in suitable if (key := _key(row, algorithm)) is not None]
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._next_fetch_ms or (not found and now_ms >= self._fetched_ms + self._backoff_ms):
            self.refresh()
        return found

    def _fetched(self, outcome: Future[list[Row]]) -> None:
        self._is_fetching = False
        error = outcome.exception()
        if error is None:
            self._rows = outcome.result()
        else:
            log.warn("cannot fetch the keys of tokens: the old ones stay in use", url=self._url, reason=str(error))
        self._note(failed=error is not None)

    def _note(self, *, failed: bool) -> None:
        self._failures = self._failures + 1 if failed else 0
        delay_ms = self._refresh_ms
        if failed:
            delay_ms = min(self._backoff_ms * 2 ** min(self._failures - 1, 20), self._backoff_max_ms)
        self._fetched_ms = self._clock.monotonic_ms()
        self._next_fetch_ms = self._fetched_ms + delay_ms


def fetch_document(url: str) -> bytes:
    """Return the content of a file or http(s) URL. Raises OSError, and ValueError above one megabyte."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        with open(url2pathname(parts.path), "rb") as file:  # noqa: PTH123  the path of a file URL
            data: bytes = file.read(_MOST_BYTES + 1)
    else:
        with urlopen(url, timeout=_TIMEOUT_S) as response:  # noqa: S310  its scheme is one of SCHEMES
            data = response.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError("the document is larger than a megabyte")
    return data


def _key(row: Row, algorithm: str) -> PyJWK | None:
    """Return the key for an algorithm; None if it does not fit, such as a key of another curve."""
    from jwt import PyJWK, PyJWTError  # the extra oauthbearer

    try:
        return PyJWK(row, algorithm)
    except PyJWTError:
        return None


def _parsed(document: bytes) -> list[Row]:
    """Return the usable keys of a JWKS document. Raises ValueError if it has none."""
    from jwt import PyJWK, PyJWTError  # the extra oauthbearer

    found = json.loads(document)
    rows: list[Row] = []
    listed = found.get("keys") if isinstance(found, dict) else None
    for row in listed if isinstance(listed, list) else ():
        # No symmetric keys: a shared secret would let every broker sign tokens.
        if not isinstance(row, dict) or row.get("kty") not in _FAMILIES.values() or row.get("use", "sig") != "sig":
            continue
        try:
            PyJWK(row)
        except PyJWTError:
            continue
        rows.append(row)
    if not rows:
        raise ValueError("the document has no public key for signatures")
    return rows


class SignedTokens:
    """An ``oauthbearer.Validate`` that checks signatures."""

    def __init__(self, keys: SigningKeys, rules: Rules, clock: Clock) -> None:
        self.keys = keys
        self._rules = rules
        self._clock = clock

    def __call__(self, token: str) -> Token:
        """Validate a token. Raises BearerRefused, InvalidToken."""
        parts = parse_token(token)
        try:
            self._ensure_signed(token, parts)
            return check_signed(parts.claims, self._rules, self._clock.now_ms())
        except InvalidToken as error:
            raise BearerRefused(error, subject_of(parts.claims, self._rules.subject_claim)) from error

    def _ensure_signed(self, token: str, parts: ParsedToken) -> None:
        from jwt import PyJWS, PyJWTError  # the extra oauthbearer

        algorithm, key_id = parts.header.get("alg"), parts.header.get("kid")
        if not isinstance(algorithm, str) or algorithm == "none" or not parts.is_signed:
            raise InvalidToken("it is not signed")
        if key_id is not None and not isinstance(key_id, str):
            raise InvalidToken("it has no key id")
        candidates = self.keys.candidates(key_id, algorithm)
        if not candidates:
            raise InvalidToken("it is signed with a key that is not in the JWKS document")
        for key in candidates:
            try:
                PyJWS().decode(token, key, algorithms=[algorithm])
            except (PyJWTError, ValueError, TypeError):
                # Any failure here comes from the token's content.
                continue
            return
        raise InvalidToken("its signature is wrong")


class UnsecuredTokens:
    """An ``oauthbearer.Validate`` for unsigned tokens, which anybody can make: for tests."""

    def __init__(self, rules: Rules, clock: Clock) -> None:
        self._rules = rules
        self._clock = clock

    def __call__(self, token: str) -> Token:
        """Validate a token. Raises BearerRefused, InvalidToken."""
        parts = parse_token(token)
        try:
            return check_unsecured(parts, self._rules, self._clock.now_ms())
        except InvalidToken as error:
            raise BearerRefused(error, subject_of(parts.claims, self._rules.subject_claim)) from error


_HANDLER: Final = "sasl.server.callback.handler.class"
_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
# Kafka moved the class; both names are valid.
_SIGNED: Final = (f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler", f"{_PACKAGE}.secured.OAuthBearerValidatorCallbackHandler")
_UNSECURED: Final = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
_OPTION: Final = "unsecured"
_SECOND_MS: Final = 1_000


def bearer_tokens(
    config: SaslConfig, options: Mapping[str, str], clock: Clock, background: Background
) -> tuple[Validate, SigningKeys | None]:
    """Return the token validator, and its signing keys, not loaded yet; None for unsigned tokens. Raises InvalidConfig."""
    handler = config.value("sasl.server.callback.handler.class", OAUTHBEARER)
    url = config.value("sasl.oauthbearer.jwks.endpoint.url", OAUTHBEARER)
    if handler not in (None, _UNSECURED, *_SIGNED):
        raise config.invalid(_HANDLER, f"one of {_SIGNED[0]}, {_UNSECURED}", OAUTHBEARER)
    has_option = any(name.startswith(_OPTION) for name in options)
    if handler == _UNSECURED or (handler is None and url is None and has_option):
        return UnsecuredTokens(_unsecured_rules(config, options), clock), None
    if url is None or url.partition("://")[0] not in SCHEMES:
        allowed = f"a {', '.join(SCHEMES)} URL of a JWKS document; unsecured tokens are accepted with {_HANDLER}={_UNSECURED}"
        raise config.invalid(_URL, allowed, OAUTHBEARER)
    if find_spec("jwt") is None:
        raise config.invalid(_URL, "left out: signed tokens need pip install 'odradek[oauth]'", OAUTHBEARER)
    keys = SigningKeys(
        url,
        refresh_ms=config.value("sasl.oauthbearer.jwks.endpoint.refresh.ms", OAUTHBEARER),
        backoff_ms=config.value("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", OAUTHBEARER),
        backoff_max_ms=config.value("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", OAUTHBEARER),
        clock=clock,
        background=background,
    )
    _ensure_claim(config, "audience", "sasl.oauthbearer.expected.audience", "sasl.oauthbearer.allow.unverified.audience")
    _ensure_claim(config, "issuer", "sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.allow.unverified.issuer")
    rules = Rules(
        subject_claim=config.value("sasl.oauthbearer.sub.claim.name", OAUTHBEARER),
        scope_claim=config.value("sasl.oauthbearer.scope.claim.name", OAUTHBEARER),
        skew_ms=config.value("sasl.oauthbearer.clock.skew.seconds", OAUTHBEARER) * _SECOND_MS,
        audiences=config.value("sasl.oauthbearer.expected.audience", OAUTHBEARER) or (),
        issuer=config.value("sasl.oauthbearer.expected.issuer", OAUTHBEARER),
    )
    return SignedTokens(keys, rules, clock), keys


def _ensure_claim(config: SaslConfig, claim: str, expected: str, allow: str) -> None:
    """Raise InvalidConfig if a claim of tokens is neither given nor left unverified on purpose."""
    if not config.value(expected, OAUTHBEARER) and not config.value(allow, OAUTHBEARER):
        raise config.invalid(expected, f"the {claim} of tokens for this cluster; {allow}=true accepts any", OAUTHBEARER)


def load_keys(config: SaslConfig, keys: SigningKeys) -> None:
    """Fetch the keys before the broker serves. Raises InvalidConfig if the fetch fails."""
    try:
        keys.load()
    except (OSError, ValueError) as error:
        raise config.invalid(_URL, f"the URL of a JWKS document ({error})", OAUTHBEARER) from error


def _unsecured_rules(config: SaslConfig, options: Mapping[str, str]) -> Rules:
    """Return the rules from the JAAS line's ``unsecuredValidator...`` options. Raises InvalidConfig."""

    def option(name: str, default: str) -> str:
        return options.get(f"unsecuredValidator{name}", "").strip() or default

    skew = option("AllowableClockSkewMs", "0")
    if not (skew.isascii() and skew.isdigit()):
        key = config.jaas_key(OAUTHBEARER)
        raise InvalidConfig(key, HIDDEN, "a JAAS line whose unsecuredValidatorAllowableClockSkewMs is a number of ms")
    return Rules(
        subject_claim=option("PrincipalClaimName", "sub"),
        scope_claim=option("ScopeClaimName", "scope"),
        skew_ms=int(skew),
        required_scope=tuple(option("RequiredScope", "").split()),
    )
