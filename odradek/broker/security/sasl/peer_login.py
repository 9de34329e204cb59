"""The login of a node at other nodes of its cluster, through a SASL listener of theirs.

As in Kafka, the credentials are in this node's JAAS line for that listener and mechanism, even if the node itself has no such
listener. They are ``username`` and ``password``, beside the users of a PLAIN listener. For OAUTHBEARER the credential is a token:
from a file, or an unsigned one that the node makes. Kafka's class is SaslChannelBuilder.

    sasl.login.callback.handler.class

    OAuthBearerLoginCallbackHandler             the file of sasl.oauthbearer.token.endpoint.url, renewed by others (KIP-768)
    OAuthBearerUnsecuredLoginCallbackHandler    claims of the JAAS line, as in Kafka; the default

        unsecuredLoginStringClaim_NAME, unsecuredLoginNumberClaim_NAME
        unsecuredLoginListClaim_NAME            the value's first character separates the items
        unsecuredLoginPrincipalClaimName        the claim with the principal's name; default sub
        unsecuredLoginLifetimeSeconds           default 3600

Left out: tokens fetched over HTTP with a client id and secret, and SASL extensions.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.security.sasl.bearer_configs import fetch_document
from odradek.broker.security.sasl.listeners import login_module
from odradek.broker.security.sasl.oauthbearer import InvalidToken, parse_token
from odradek.client.login import Login
from odradek.common.config.definitions import HIDDEN, InvalidConfig
from odradek.common.config.listener_config import MECHANISMS, OAUTHBEARER
from odradek.common.logging import log

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.config.listener_config import SaslConfig
    from odradek.timing.clock import Clock

_HANDLER: Final = "sasl.login.callback.handler.class"
_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
# Kafka moved the class; both names are valid.
_FROM_URL: Final = (f"{_PACKAGE}.OAuthBearerLoginCallbackHandler", f"{_PACKAGE}.secured.OAuthBearerLoginCallbackHandler")
_UNSECURED: Final = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
_OPTION: Final = "unsecuredLogin"
_RESERVED: Final = frozenset({"iat", "exp"})
_FILE: Final = "file:"
_TOKEN: Final = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")
_SECOND_MS: Final = 1_000


class PeerToken(NamedTuple):
    """A token, and the user that it authenticates."""

    user: str
    token: str

    def __repr__(self) -> str:
        return f"PeerToken({self.user!r}, [hidden])"


def peer_token(config: SaslConfig, options: Mapping[str, str], now_ms: int) -> PeerToken:
    """Return the token for logins at a listener; ``options`` are those of its JAAS line. Raises InvalidConfig."""
    handler = config.value("sasl.login.callback.handler.class", OAUTHBEARER)
    if handler in _FROM_URL:
        return _from_file(config)
    if handler not in (None, _UNSECURED):
        raise config.invalid(_HANDLER, f"one of {_FROM_URL[0]}, {_UNSECURED}", OAUTHBEARER)
    try:
        return _unsecured(options, now_ms)
    except ValueError as error:
        allowed = f"a JAAS line with {_OPTION}StringClaim_sub for this node's login, or {_HANDLER}={_FROM_URL[0]}: {error}"
        raise InvalidConfig(config.jaas_key(OAUTHBEARER), HIDDEN, allowed) from error


def _from_file(config: SaslConfig) -> PeerToken:
    url = config.value("sasl.oauthbearer.token.endpoint.url", OAUTHBEARER)
    subject_claim = config.value("sasl.oauthbearer.sub.claim.name", OAUTHBEARER)
    if url is None or not url.startswith(_FILE):
        raise config.invalid(_URL, "a file: URL of a token: odradek does not fetch tokens", OAUTHBEARER)
    try:
        token = fetch_document(url).decode("ascii").strip()
        claims = parse_token(token).claims
        user, expires = claims.get(subject_claim), claims.get("exp")
    except (OSError, ValueError, InvalidToken) as error:
        raise config.invalid(_URL, f"the URL of a JWT ({error})", OAUTHBEARER) from error
    if not isinstance(user, str) or not user.strip() or not isinstance(expires, (int, float)) or not _TOKEN.fullmatch(token):
        raise config.invalid(_URL, f"the URL of a JWT with {subject_claim} and exp", OAUTHBEARER)
    return PeerToken(user.strip(), token)


def _unsecured(options: Mapping[str, str], now_ms: int) -> PeerToken:
    """Make an unsigned token of the JAAS line's claims. Raises ValueError."""
    lifetime_s = int(options.get(f"{_OPTION}LifetimeSeconds", "3600"))
    subject_claim = options.get(f"{_OPTION}PrincipalClaimName", "").strip() or "sub"
    now_s = now_ms / _SECOND_MS
    claims: dict[str, object] = {"exp": now_s + lifetime_s, "iat": now_s}
    for name, value in options.items():
        kind, is_claim, claim = name.removeprefix(_OPTION).partition("Claim_")
        if not name.startswith(_OPTION) or not is_claim:
            continue
        if claim in _RESERVED:
            raise ValueError(f"{claim} cannot be set")
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


_WHY_NOT: Final = {"GSSAPI": "there is no GSSAPI (Kerberos)"}


class PeerLogin:
    """The login for connections to one listener. ``config_name`` is the config with the mechanism. Loop thread only."""

    def __init__(self, config: BrokerConfig, listener: str, config_name: str, clock: Clock) -> None:
        """Read the login from the configs. Raises InvalidConfig."""
        self._config = config
        self._clock = clock
        self._listener = listener
        self._config_name = config_name
        self._login = self._read()

    def __call__(self) -> Login:
        """Return the login for one connection or token session, from the current configs; if they are invalid, the last login."""
        try:
            self._login = self._read()
        except InvalidConfig as error:
            log.warn("the login's configs are invalid: using the last valid login", listener=self._listener, reason=str(error))
        return self._login

    def _read(self) -> Login:
        mechanism = self._config[self._config_name]
        if mechanism not in MECHANISMS:
            allowed = f"one of {', '.join(MECHANISMS)}, because listener {self._listener} uses SASL"
            why_not = _WHY_NOT.get(mechanism)
            raise InvalidConfig(self._config_name, mechanism, allowed if why_not is None else f"{allowed}: {why_not}")
        sasl = self._config.sasl_config(self._listener)
        options = login_module(sasl, mechanism).options
        if mechanism == OAUTHBEARER:
            return Login(mechanism, *peer_token(sasl, options, self._clock.now_ms()))
        missing = " and ".join(name for name in ("username", "password") if not options.get(name))
        if missing:
            allowed = f"a JAAS line with username and password for this node's login: no {missing}"
            raise InvalidConfig(sasl.jaas_key(mechanism), HIDDEN, allowed)
        return Login(mechanism, options["username"], options["password"])
