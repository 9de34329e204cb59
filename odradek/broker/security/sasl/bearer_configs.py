"""Make the token validator of OAUTHBEARER from its configs: by signing keys, or for unsigned tokens if configured.

Kafka's default is the handler that accepts unsigned tokens. Here that handler must be named, or the JAAS line must have an
``unsecured...`` option, as in Kafka's documentation.

A valid token is signed with a key of the JWKS document, or is unsigned where that is configured. It authenticates its subject.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from odradek.broker.security.sasl.oauthbearer import BearerRefused
from odradek.broker.security.sasl.signing_keys import SCHEMES, SigningKeys
from odradek.broker.security.sasl.tokens import (
    InvalidToken,
    Parts,
    Rules,
    Token,
    check_signed,
    check_unsecured,
    subject_of,
    take_apart,
)
from odradek.common.config.definitions import HIDDEN, InvalidConfig
from odradek.common.config.listener_config import OAUTHBEARER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.broker.security.sasl.oauthbearer import Validate
    from odradek.common.config.listener_config import SaslConfig
    from odradek.timing.background import Background
    from odradek.timing.clock import Clock


class SignedTokens:
    """An ``oauthbearer.Validate`` that checks signatures."""

    def __init__(self, keys: SigningKeys, rules: Rules, clock: Clock) -> None:
        self.keys = keys
        self._rules = rules
        self._clock = clock

    def __call__(self, token: str) -> Token:
        """Validate a token. Raises BearerRefused, InvalidToken."""
        parts = take_apart(token)
        try:
            self._ensure_signed(token, parts)
            return check_signed(parts.claims, self._rules, self._clock.now_ms())
        except InvalidToken as error:
            raise BearerRefused(error, subject_of(parts.claims, self._rules.subject_claim)) from error

    def _ensure_signed(self, token: str, parts: Parts) -> None:
        from jwt import PyJWS
        from jwt.exceptions import PyJWTError

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
        parts = take_apart(token)
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
    rules = Rules(
        subject_claim=config.value("sasl.oauthbearer.sub.claim.name", OAUTHBEARER),
        scope_claim=config.value("sasl.oauthbearer.scope.claim.name", OAUTHBEARER),
        skew_ms=config.value("sasl.oauthbearer.clock.skew.seconds", OAUTHBEARER) * _SECOND_MS,
        audiences=config.value("sasl.oauthbearer.expected.audience", OAUTHBEARER) or (),
        issuer=config.value("sasl.oauthbearer.expected.issuer", OAUTHBEARER),
    )
    return SignedTokens(keys, rules, clock), keys


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
