"""The token that a node shows where it logs in by OAUTHBEARER: one in a file, or one that it makes and nobody has signed.

    sasl.login.callback.handler.class

    OAuthBearerLoginCallbackHandler             a file, sasl.oauthbearer.token.endpoint.url, which something else renews (KIP-768)
    OAuthBearerUnsecuredLoginCallbackHandler    claims of the JAAS line, as in Kafka. So it is where there is no handler

        unsecuredLoginStringClaim_NAME, unsecuredLoginNumberClaim_NAME
        unsecuredLoginListClaim_NAME            its first character stands between the values
        unsecuredLoginPrincipalClaimName        the claim that has the name of the principal: sub
        unsecuredLoginLifetimeSeconds           3600

Left out: tokens that are fetched over HTTP with a client's id and secret, and SASL extensions.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.config.definitions import HIDDEN, InvalidConfig
from odradek.broker.config.sasl_config import OAUTHBEARER
from odradek.broker.sasl.signing_keys import fetch_document
from odradek.broker.sasl.tokens import InvalidToken, take_apart

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.broker.config.sasl_config import SaslConfig

_HANDLER: Final = "sasl.login.callback.handler.class"
_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
# Kafka has moved it.
_FROM_URL: Final = (f"{_PACKAGE}.OAuthBearerLoginCallbackHandler", f"{_PACKAGE}.secured.OAuthBearerLoginCallbackHandler")
_UNSECURED: Final = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
_OPTION: Final = "unsecuredLogin"
_RESERVED: Final = frozenset({"iat", "exp"})
_FILE: Final = "file:"
_TOKEN: Final = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")
_SECOND_MS: Final = 1_000


class PeerToken(NamedTuple):
    """A token, and the name of who it lets in."""

    user: str
    token: str

    def __repr__(self) -> str:
        return f"PeerToken({self.user!r}, [hidden])"


def peer_token(config: SaslConfig, options: Mapping[str, str], now_ms: int) -> PeerToken:
    """The token of a listener; ``options`` are those of its JAAS line. Raises InvalidConfig."""
    handler = config.value("sasl.login.callback.handler.class", OAUTHBEARER)
    if handler in _FROM_URL:
        return _from_file(config)
    if handler not in (None, _UNSECURED):
        raise config.invalid(_HANDLER, f"one of {_FROM_URL[0]}, {_UNSECURED}", OAUTHBEARER)
    try:
        return _unsecured(options, now_ms)
    except ValueError as error:
        allowed = f"a JAAS line with {_OPTION}StringClaim_sub, by which this node logs in, or {_HANDLER}={_FROM_URL[0]}: {error}"
        raise InvalidConfig(config.jaas_key(OAUTHBEARER), HIDDEN, allowed) from error


def _from_file(config: SaslConfig) -> PeerToken:
    url = config.value("sasl.oauthbearer.token.endpoint.url", OAUTHBEARER)
    subject_claim = config.value("sasl.oauthbearer.sub.claim.name", OAUTHBEARER)
    if url is None or not url.startswith(_FILE):
        raise config.invalid(_URL, "a file: URL of a token: tokens are not fetched", OAUTHBEARER)
    try:
        token = fetch_document(url).decode("ascii").strip()
        claims = take_apart(token).claims
        user, expires = claims.get(subject_claim), claims.get("exp")
    except (OSError, ValueError, InvalidToken) as error:
        raise config.invalid(_URL, f"where a JWT is ({error})", OAUTHBEARER) from error
    if not isinstance(user, str) or not user.strip() or not isinstance(expires, (int, float)) or not _TOKEN.fullmatch(token):
        raise config.invalid(_URL, f"where a JWT is that has {subject_claim} and exp", OAUTHBEARER)
    return PeerToken(user.strip(), token)


def _unsecured(options: Mapping[str, str], now_ms: int) -> PeerToken:
    """Raises ValueError."""
    lifetime_s = int(options.get(f"{_OPTION}LifetimeSeconds", "3600"))
    subject_claim = options.get(f"{_OPTION}PrincipalClaimName", "").strip() or "sub"
    now_s = now_ms / _SECOND_MS
    claims: dict[str, object] = {"exp": now_s + lifetime_s, "iat": now_s}
    for name, value in options.items():
        kind, is_claim, claim = name.removeprefix(_OPTION).partition("Claim_")
        if not name.startswith(_OPTION) or not is_claim:
            continue
        if claim in _RESERVED:
            raise ValueError(f"{claim} is not to be set")
        match kind:
            case "String":
                claims[claim] = value
            case "Number":
                claims[claim] = float(value)
            case "List":
                claims[claim] = value[1:].split(value[0]) if len(value) > 1 else []
    user = claims.get(subject_claim)
    if not isinstance(user, str) or not user.strip():
        raise ValueError(f"there is no {subject_claim}")
    return PeerToken(user, f"{_encoded({'alg': 'none'})}.{_encoded(claims)}.")


def _encoded(part: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
