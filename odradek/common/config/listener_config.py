"""The listeners of a configuration: parses them, checks that they are consistent, and finds the configs of each.

``NAME://HOST:PORT``: the name in any case, an empty host for every interface, an IPv6 host in brackets. ``NAME:VALUE`` maps,
for security protocols and for connection limits by address, are split at the last colon, since an address may contain colons.

The configs of one listener are ``listener.name.<listener>.<config>``, else the broker's. A listener with SASL also has configs
for each mechanism:

    listener.name.<listener>.<mechanism>.<config>    of one mechanism there, else
    listener.name.<listener>.<config>                of the listener, else
    <config>                                         of the broker

Listeners and mechanisms are in lower case in these keys, as in Kafka.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol

from odradek.common.config.definitions import HIDDEN, InvalidConfig, Value, parse, to_text
from odradek.common.config.table import BROKER_CONFIGS, BROKER_DEFAULTS
from odradek.common.config.table_security import SASL, SSL_NAMES

MAX_PORT = 65535
PLAINTEXT = "PLAINTEXT"
SSL = "SSL"
SASL_PLAINTEXT = "SASL_PLAINTEXT"
SASL_SSL = "SASL_SSL"
TLS_PROTOCOLS = (SSL, SASL_SSL)
SASL_PROTOCOLS = (SASL_PLAINTEXT, SASL_SSL)
# In the order of their ids.
_PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
_A_MAP = "a list of NAME:PROTOCOL"
_ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104  compared, not bound


class ConfigValues(Protocol):
    """Typed values by the names of configs."""

    def __getitem__(self, name: str, /) -> Any:
        """Return the value of a config."""


class Endpoint(NamedTuple):
    """A configured listener; an empty host is every interface, port 0 a free port."""

    name: str
    host: str
    port: int


def opened_listeners(listeners: Sequence[str], controller_listener_names: Sequence[str]) -> tuple[str, ...]:
    """Return the ``listeners`` that the broker opens: all but those for controllers."""
    withheld = {name.upper() for name in controller_listener_names}
    return tuple(listener for listener in listeners if listener.partition("://")[0].strip().upper() not in withheld)


def controller_listeners(listeners: Sequence[str], controller_listener_names: Sequence[str]) -> tuple[str, ...]:
    """Return the ``listeners`` of a controller, which its broker does not open."""
    opened = opened_listeners(listeners, controller_listener_names)
    return tuple(listener for listener in listeners if listener not in opened)


def check_controller_listeners(values: Mapping[str, Any], listeners: Sequence[str]) -> None:
    """Raise InvalidConfig if the ``listeners`` of a controller cannot be bound. The default protocol is PLAINTEXT."""
    endpoints = parse_endpoints("listeners", listeners)
    protocols = {endpoint.name: PLAINTEXT for endpoint in endpoints} | security_protocols(values)
    _check_bindable(endpoints, protocols)


def check_listeners(values: Mapping[str, Any]) -> None:
    """Raise InvalidConfig if listeners cannot be parsed, bound or secured, or an advertised listener does not exist."""
    protocols = security_protocols(values)
    listeners = parse_endpoints("listeners", values["listeners"])
    if not listeners and "broker" in values["process.roles"]:
        raise InvalidConfig("listeners", "", "a list that has a listener for clients, besides the controller's")
    _check_bindable(listeners, protocols)
    names = [endpoint.name for endpoint in listeners]
    controllers = {name.upper() for name in values["controller.listener.names"]}
    advertised = [
        endpoint
        for endpoint in parse_endpoints("advertised.listeners", values["advertised.listeners"] or ())
        if endpoint.name not in controllers
    ]
    for endpoint in advertised:
        if endpoint.name not in names:
            raise InvalidConfig("advertised.listeners", endpoint.name, f"among the names of listeners: {', '.join(names)}")
        if endpoint.host in _ANY_ADDRESS:
            raise InvalidConfig("advertised.listeners", endpoint.host, "an address that clients can connect to")
    # A controller may have the configs of its brokers.
    if "broker" in values["process.roles"]:
        _check_inter_broker(values, names)


def inter_broker_listener(values: ConfigValues) -> str:
    """Return the name of the listener for connections between brokers, in upper case."""
    name: str = values["inter.broker.listener.name"] or values["security.inter.broker.protocol"]
    return name.upper()


def security_protocols(values: ConfigValues) -> dict[str, str]:
    """Return the protocol of each listener's name (``listener.security.protocol.map``), in upper case; raises InvalidConfig."""
    protocols = {}
    for name, protocol in _parse_map("listener.security.protocol.map", values["listener.security.protocol.map"], _A_MAP):
        if protocol.upper() not in _PROTOCOLS:
            raise InvalidConfig("listener.security.protocol.map", protocol, f"one of {', '.join(_PROTOCOLS)}")
        protocols[name.upper()] = protocol.upper()
    return protocols


def security_protocol_id(values: ConfigValues, listener: str) -> int:
    """Return the number of a listener's protocol in registrations; PLAINTEXT's if the map lacks the listener."""
    return _PROTOCOLS.index(security_protocols(values).get(listener, PLAINTEXT))


def security_protocols_of(values: ConfigValues, endpoints: Sequence[Endpoint]) -> list[str]:
    """Return the protocols of these listeners; PLAINTEXT for listeners that the map lacks."""
    protocols = security_protocols(values)
    return [protocols.get(endpoint.name, PLAINTEXT) for endpoint in endpoints]


def _check_inter_broker(values: Mapping[str, Any], names: Sequence[str]) -> None:
    named = values["inter.broker.listener.name"]
    by_protocol = values["security.inter.broker.protocol"]
    if named is not None and by_protocol != PLAINTEXT:
        raise InvalidConfig("security.inter.broker.protocol", by_protocol, "left out if inter.broker.listener.name is set")
    key = "security.inter.broker.protocol" if named is None else "inter.broker.listener.name"
    name = inter_broker_listener(values)
    is_among_others = values["process.roles"] == ("broker",)
    if (named is not None or by_protocol != PLAINTEXT or is_among_others) and name not in names:
        raise InvalidConfig(key, named or by_protocol, f"among the names of listeners: {', '.join(names)}")


@lru_cache(maxsize=8)
def per_ip_overrides(text: str) -> Mapping[str, int]:
    """Return ``max.connections.per.ip.overrides``: the limit of each address or host name; raises InvalidConfig.

    The result is cached, because each new connection needs it.
    """
    overrides = {}
    for address, limit in _parse_map("max.connections.per.ip.overrides", text, "a list of ADDRESS:COUNT"):
        if not limit.isdecimal():
            raise InvalidConfig("max.connections.per.ip.overrides", f"{address}:{limit}", "a list of ADDRESS:COUNT")
        overrides[address] = int(limit)
    return overrides


def parse_endpoints(key: str, listeners: Sequence[str]) -> list[Endpoint]:
    """Return the listeners of config ``key``; raises InvalidConfig."""
    endpoints = []
    for listener in listeners:
        name, separator, address = listener.partition("://")
        host, colon, port = address.rpartition(":")
        if not (name.strip() and separator and colon and port.isascii() and port.isdigit()) or int(port) > MAX_PORT:
            raise InvalidConfig(key, listener, "NAME://HOST:PORT")
        endpoints.append(Endpoint(name.strip().upper(), host.strip("[]"), int(port)))
    names = [endpoint.name for endpoint in endpoints]
    if len(set(names)) < len(names):
        raise InvalidConfig(key, ",".join(listeners), "listeners of different names")
    return endpoints


def _check_bindable(listeners: Sequence[Endpoint], protocols: Mapping[str, str]) -> None:
    taken: dict[tuple[int, bool], str] = {}
    for endpoint in listeners:
        protocol = protocols.get(endpoint.name)
        if protocol is None:
            raise InvalidConfig("listeners", endpoint.name, "a listener with a protocol in listener.security.protocol.map")
        # As in Kafka, only an IPv4 and an IPv6 listener may share a port.
        place = (endpoint.port, ":" in endpoint.host)
        if endpoint.port and place in taken:
            raise InvalidConfig("listeners", f"{taken[place]},{endpoint.name}", "on different ports")
        taken[place] = endpoint.name


def _parse_map(key: str, text: str, allowed: str) -> list[tuple[str, str]]:
    pairs = []
    for entry in filter(None, text.split(",")):
        name, colon, value = entry.rpartition(":")
        if not colon or not name.strip():
            raise InvalidConfig(key, entry, allowed)
        pairs.append((name.strip(), value.strip()))
    return pairs


PREFIX: Final = "listener.name."
_OF_LISTENERS: Final = SSL_NAMES


def listener_key(listener: str, name: str) -> str:
    """Return the key that sets a config for one listener."""
    return f"{PREFIX}{listener.lower()}.{name}"


def is_listener_config(key: str) -> bool:
    """Return whether ``key`` sets a listener config for one listener."""
    return key.startswith(PREFIX) and key.removeprefix(PREFIX).partition(".")[2] in _OF_LISTENERS


def is_config_of_listeners(key: str, listeners: Collection[str]) -> bool:
    """Return whether ``key`` sets a listener config for one of ``listeners``, whose names are in upper case."""
    listener = key.removeprefix(PREFIX).partition(".")[0]
    return is_listener_config(key) and listener.upper() in listeners and listener == listener.lower()


def check_of_listeners(texts: Mapping[str, str]) -> None:
    """Raise InvalidConfig if a listener's config has an invalid value."""
    for key, text in texts.items():
        if is_listener_config(key):
            _parse(key, key.removeprefix(PREFIX).partition(".")[2], text)


def _parse(key: str, name: str, text: str) -> Value:
    return parse(BROKER_CONFIGS[name]._replace(name=key), text)


class ListenerConfig:
    """The typed values for ``listener``: ``config["ssl.client.auth"]``. ``texts`` are all set texts, ``values`` the broker's."""

    __slots__ = ("_is_sasl", "_own", "_values", "listener")

    def __init__(self, listener: str, values: Mapping[str, Any], texts: Mapping[str, str]) -> None:
        self.listener = listener
        self._values = values
        self._own: dict[str, Value] = {}
        self._is_sasl = security_protocols(values).get(listener) == SASL_SSL
        for name in _OF_LISTENERS:
            key = listener_key(listener, name)
            if key in texts:
                self._own[name] = _parse(key, name, texts[key])

    def __getitem__(self, name: str) -> Any:
        if name == "ssl.client.auth" and self._is_sasl and name not in self._own:
            # As in Kafka, the broker's value is for SSL listeners, where certificates name the clients.
            return "none"
        return self._own[name] if name in self._own else self._values[name]

    def key(self, name: str) -> str:
        """Return the key that sets the config."""
        return listener_key(self.listener, name) if name in self._own else name

    def ssl_values(self) -> tuple[Value, ...]:
        """Return the values that TLS on this listener depends on, for a comparison."""
        return tuple(self[name] for name in sorted(SSL_NAMES))

    def invalid(self, name: str, allowed: str) -> InvalidConfig:
        """Return the error for a wrong value. It does not reveal a secret."""
        value = HIDDEN if BROKER_CONFIGS[name].sensitive and self[name] is not None else to_text(self[name])
        return InvalidConfig(self.key(name), value or "(not set)", allowed)


PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = (PLAIN, "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)
_NAMES: Final = frozenset(row.name for row in SASL)
# These have one value for all listeners.
_OF_THE_BROKER: Final = frozenset({"connection.failed.authentication.delay.ms"})


def is_sasl_key(key: str) -> bool:
    """Return whether ``key`` sets a SASL config for a listener, or for one of its mechanisms."""
    if not key.startswith(PREFIX):
        return False
    name = key.removeprefix(PREFIX).partition(".")[2]
    mechanism, _, rest = name.partition(".")
    return name in _NAMES or (mechanism.upper() in MECHANISMS and rest in _NAMES)


def sets_sasl_of(key: str, listeners: Collection[str]) -> bool:
    """Return whether ``key`` sets a SASL config for one of ``listeners``, whose names are in upper case."""
    listener = key.removeprefix(PREFIX).partition(".")[0]
    return is_sasl_key(key) and listener.upper() in listeners and listener == listener.lower()


class SaslConfig:
    """The typed SASL values for ``listener``. ``texts`` are all set texts. Raises InvalidConfig for an invalid value."""

    __slots__ = ("_texts", "listener")

    def __init__(self, listener: str, texts: Mapping[str, str]) -> None:
        self.listener = listener
        self._texts = texts

    def value(self, name: str, mechanism: str | None = None) -> Any:
        """Return the value of a config, for a mechanism if one is given."""
        for key in self._keys(name, mechanism):
            if key in self._texts:
                return parse(BROKER_CONFIGS[name]._replace(name=key), self._texts[key])
        return BROKER_DEFAULTS[name]

    def is_set_for(self, name: str, mechanism: str) -> bool:
        """Return whether a config is set for exactly this mechanism of this listener."""
        return next(self._keys(name, mechanism)) in self._texts

    def key(self, name: str, mechanism: str | None = None) -> str:
        """Return the key that sets the config; if it is not set, the most specific key."""
        keys = list(self._keys(name, mechanism))
        return next((key for key in keys if key in self._texts), keys[0])

    def invalid(self, name: str, allowed: str, mechanism: str | None = None) -> InvalidConfig:
        """Return the error for a wrong value. It does not reveal a secret."""
        value = self.value(name, mechanism)
        told = HIDDEN if BROKER_CONFIGS[name].type == BROKER_CONFIGS["sasl.jaas.config"].type and value else to_text(value)
        return InvalidConfig(self.key(name, mechanism), told or "(not set)", allowed)

    def jaas_line(self, mechanism: str) -> str | None:
        """Return the JAAS line of a mechanism. A line for all mechanisms, or for all listeners, has no effect."""
        text: str | None = self._texts.get(self.jaas_key(mechanism))
        return text

    def jaas_key(self, mechanism: str) -> str:
        """Return the key that sets the JAAS line."""
        return next(self._keys("sasl.jaas.config", mechanism))

    def settings(self) -> dict[str, str]:
        """Return all SASL settings that may concern this listener, for a comparison."""
        mine = (self.listener,)
        return {key: text for key, text in self._texts.items() if key in _NAMES or sets_sasl_of(key, mine)}

    def without_effect(self, mechanisms: Iterable[str]) -> Iterator[str]:
        """Yield the keys that are set for this listener's mechanisms which are not enabled."""
        mine = f"{PREFIX}{self.listener.lower()}."
        enabled = tuple(f"{mine}{mechanism.lower()}." for mechanism in mechanisms)
        for mechanism in MECHANISMS:
            start = f"{mine}{mechanism.lower()}."
            if start not in enabled:
                yield from (key for key in self._texts if key.startswith(start))

    def _keys(self, name: str, mechanism: str | None) -> Iterator[str]:
        if name not in _OF_THE_BROKER:
            listener = f"{PREFIX}{self.listener.lower()}."
            if mechanism is not None:
                yield f"{listener}{mechanism.lower()}.{name}"
            yield f"{listener}{name}"
        yield name
