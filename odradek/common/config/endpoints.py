"""Parses the listeners of a configuration, and checks that they are consistent.

``NAME://HOST:PORT``: the name in any case, an empty host for every interface, an IPv6 host in brackets. ``NAME:VALUE`` maps,
for security protocols and for connection limits by address, are split at the last colon, since an address may contain colons.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from odradek.common.config.definitions import InvalidConfig

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
