"""The SASL listeners of a broker: their mechanisms, built from the configs before any listener is bound.

An unsupported mechanism or an unreadable JAAS line ends the start, with the config's key, its value and the allowed values. A
JAAS line is the value of Kafka's ``sasl.jaas.config``:

    LOGIN_MODULE FLAG option=value option="value with spaces" ... ;

One login module per line. A bare word has letters, digits, ``-_$.`` and non-ASCII characters; anything else needs quotes, with
Java's backslash escapes inside. Comments are Java's. Kafka's class is JaasConfig.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.security.sasl.mechanism import Mechanism, PlainServer, plain_users
from odradek.broker.security.sasl.oauthbearer import OAuthBearerServer
from odradek.broker.security.sasl.scram import ScramServer, no_token
from odradek.common.config.definitions import HIDDEN, InvalidConfig
from odradek.common.config.listener_config import MECHANISMS, OAUTHBEARER, PLAIN
from odradek.protocol.scram import MECHANISMS as SCRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.broker.security.sasl.bearer_configs import SigningKeys
    from odradek.broker.security.sasl.scram import ScramCredential, TokenCredential
    from odradek.common.config.listener_config import SaslConfig
    from odradek.protocol.scram import ScramMechanism
    from odradek.timing.background import Background
    from odradek.timing.clock import Clock

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""
      (?P<skipped> \s+ | //[^\r\n]* | /\*.*?\*/ )
    | (?P<word>    [\w\-$.\u00a0-\U0010ffff]+ )
    | "(?P<double> (?:\\.|[^"\\\r\n])* )"
    | '(?P<single> (?:\\.|[^'\\\r\n])* )'
    | (?P<sign>    [=;] )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasError(ValueError):
    """A line that is no JAAS line. The text says why, and quotes nothing of the line, which may hold secrets."""


class LoginModule(NamedTuple):
    """The class ``name`` of a login module, and its ``options``, some of them secrets."""

    name: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name!r}, {len(self.options)} options)"


def parse_jaas(text: str) -> LoginModule:
    """Return the login module of a line. Raises JaasError."""
    tokens = _tokens(text)
    if not tokens:
        raise JaasError("it is empty")
    if tokens[0] in ("=", ";"):
        raise JaasError("it does not begin with the class of a login module")
    if len(tokens) < 2 or tokens[1][1:].lower() not in _FLAGS:
        raise JaasError(f"the login module is not followed by one of {', '.join(_FLAGS)}")
    options: dict[str, str] = {}
    at = 2
    while at < len(tokens) and tokens[at] != ";":
        key, equals, value = (*tokens[at : at + 3], "", "", "")[:3]
        if key == "=" or equals != "=" or value in ("", "=", ";"):
            raise JaasError(f"option {len(options) + 1} is not of the form name=value")
        options[key[1:]] = value[1:]
        at += 3
    if at == len(tokens):
        raise JaasError("it does not end with a semicolon")
    if at + 1 < len(tokens):
        raise JaasError("it has more than one login module")
    return LoginModule(tokens[0][1:], options)


def _tokens(text: str) -> list[str]:
    """Split a line into tokens: ``=``, ``;``, and words, each prefixed with ``w`` to tell it from these signs."""
    tokens = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise JaasError(f"character {at + 1} needs quotes, and quotes must end on their line")
        at = match.end()
        kind = match.lastgroup
        if kind == "sign":
            tokens.append(match["sign"])
        elif kind == "word":
            tokens.append("w" + match["word"])
        elif kind != "skipped":
            tokens.append("w" + _ESCAPE.sub(_unescaped, match["double"] or match["single"] or ""))
    return tokens


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code.isdigit() and code < "8" else _ESCAPED.get(code, code)


_MODULES: Final = {
    OAUTHBEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


class SaslServices(NamedTuple):
    """The broker's services for mechanisms: SCRAM credentials of users and tokens, nonces, time, threads for fetches."""

    find_scram_credential: Callable[[str, ScramMechanism], ScramCredential | None]
    new_nonce: Callable[[], str]
    clock: Clock
    background: Background
    find_token_credential: Callable[[str, ScramMechanism], TokenCredential | None] = no_token


class SaslListener:
    """The SASL setup of one listener. ``mechanisms`` are by name; times in milliseconds, sizes in bytes."""

    __slots__ = ("failed_delay_ms", "max_receive_bytes", "mechanisms", "signing_keys")

    def __init__(self, config: SaslConfig, services: SaslServices) -> None:
        """Build the mechanisms. Raises InvalidConfig."""
        names = config.value("sasl.enabled.mechanisms")
        _ensure_known(config, names)
        # For OAUTHBEARER with signed tokens. The caller loads them.
        self.signing_keys: SigningKeys | None = None
        self.mechanisms: Mapping[str, Mechanism] = {name: self._enable(config, name, services) for name in names}
        self.failed_delay_ms: int = config.value("connection.failed.authentication.delay.ms")
        self.max_receive_bytes: int = config.value("sasl.server.max.receive.size")

    def _enable(self, config: SaslConfig, name: str, services: SaslServices) -> Mechanism:
        module = login_module(config, name)
        max_reauth_ms = config.value("connections.max.reauth.ms", name)
        if name == OAUTHBEARER:
            from odradek.broker.security.sasl.bearer_configs import bearer_tokens  # 12 ms

            validate, self.signing_keys = bearer_tokens(config, module.options, services.clock, services.background)
            return Mechanism(lambda: OAuthBearerServer(validate), max_reauth_ms)
        _ensure_no_handler(config, name)
        if name == PLAIN:
            users = plain_users(module.options)
            return Mechanism(lambda: PlainServer(users), max_reauth_ms)
        mechanism = SCRAM[name]

        def find(user: str) -> ScramCredential | None:
            return services.find_scram_credential(user, mechanism)

        def find_token(token_id: str) -> TokenCredential | None:
            return services.find_token_credential(token_id, mechanism)

        return Mechanism(lambda: ScramServer(mechanism, find, services.new_nonce, find_token), max_reauth_ms)


def _ensure_known(config: SaslConfig, names: tuple[str, ...]) -> None:
    allowed = f"a list of {', '.join(MECHANISMS)}"
    if "GSSAPI" in names:
        raise config.invalid("sasl.enabled.mechanisms", f"{allowed}: there is no GSSAPI (Kerberos)")
    if not names or any(name not in MECHANISMS for name in names):
        raise config.invalid("sasl.enabled.mechanisms", allowed)


def _ensure_no_handler(config: SaslConfig, mechanism: str) -> None:
    """Raise InvalidConfig for a custom callback handler: without it, the JAAS line's users would get in unchecked."""
    name = "sasl.server.callback.handler.class"
    if config.is_set_for(name, mechanism):
        raise config.invalid(name, f"left out: custom handlers are not supported for {mechanism}", mechanism)


def login_module(config: SaslConfig, mechanism: str) -> LoginModule:
    """Return the login module of a mechanism's JAAS line. Raises InvalidConfig."""
    expected = _MODULES[mechanism]
    key = config.jaas_key(mechanism)
    allowed = f"a JAAS line: {expected} required ...;"
    line = config.jaas_line(mechanism)
    if line is None:
        raise InvalidConfig(key, "(not set)", allowed)
    try:
        module = parse_jaas(line)
    except JaasError as error:
        raise InvalidConfig(key, HIDDEN, f"{allowed} ({error})") from error
    if module.name != expected:
        raise InvalidConfig(key, module.name, allowed)
    return module
