"""A ``server.properties`` for Apache Kafka 4.4 to continue with the data of an odradek broker.

    carried over    every config that was set and that Kafka has, including those that odradek accepts without acting on them
    added           settings that Kafka requires and odradek does not: node id, roles, the listener for controllers, the voter;
                    the replication factors, whose defaults are for several brokers
    commented out   every config that was set and that Kafka does not have

Some defaults differ and leave no trace in the data, such as group.initial.rebalance.delay.ms: from then on Kafka's own apply.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from odradek.common.config.broker_config import BrokerConfig
from odradek.common.config.definitions import InvalidConfig, parse_list
from odradek.common.config.ignored import IGNORED
from odradek.common.config.listener_config import Endpoint, inter_broker_listener, parse_endpoints
from odradek.common.config.table import BROKER_CONFIGS
from odradek.properties import property_line

DEFAULT_CONTROLLER_PORT = 9093
# The name of the controllers' listener, where none is configured.
CONTROLLER_LISTENER = "CONTROLLER"
_PER_LISTENER = "listener.name."
_EVERY_ADDRESS = ("", "0.0.0.0", "::")  # noqa: S104  compared, not bound
# Kafka's defaults need three brokers.
_REPLICATION = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
)
_SAME_AS_NODE_ID = "broker.id"


class KafkaProperties(NamedTuple):
    """``settings`` are for Kafka; it does not have the ``unknown``. odradek ignored the ``awakened``, and Kafka acts on them."""

    settings: dict[str, str]
    unknown: dict[str, str]
    awakened: tuple[str, ...]

    def text(self) -> str:
        """Return the file's text, in ASCII: Java reads Latin-1."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield "# Written by odradek grow-out: Apache Kafka 4.4 starts with this file on the data of an odradek broker,"
        yield "# and odradek serve --config on the same data afterwards."
        yield from (property_line(*setting) for setting in self.settings.items())
        if self.unknown:
            yield "# Apache Kafka 4.4 has no configs of these names."
            yield from (f"#{property_line(*setting)}" for setting in self.unknown.items())
        yield ""


def kafka_properties(
    config: BrokerConfig, controller_port: int | None = None, *, log_has_voters: bool = False
) -> KafkaProperties:
    """Return the properties for Kafka. ``controller_port`` is for a configuration without a listener for controllers.

    With ``log_has_voters`` the voters are in the metadata log (KIP-853), and not in the configuration. Raises InvalidConfig
    for a listener on port 0, which odradek permits and Kafka cannot use.
    """
    carried: dict[str, str] = {}
    unknown: dict[str, str] = {}
    for name, text in config.static.items():
        if name == _SAME_AS_NODE_ID:
            continue
        (carried if _is_kafkas(name) else unknown)[name] = text
    roles = config["process.roles"]
    added = {
        "process.roles": ",".join(roles),
        "node.id": str(config["node.id"]),
        **_listeners(config, controller_port),
        "log.dirs": ",".join(config["log.dirs"]),
    }
    if "broker" in roles:
        added |= {name: str(config[name]) for name in _REPLICATION}
    if "controller" in roles:
        added |= _quorum(config, added["listeners"], added["controller.listener.names"], log_has_voters=log_has_voters)
        # The other way to name the quorum.
        for name in ("controller.quorum.voters", "controller.quorum.bootstrap.servers"):
            carried.pop(name, None)
    carried.pop("log.dir", None)
    # The listener's name replaces it.
    carried.pop("security.inter.broker.protocol", None)
    return KafkaProperties(added | _without(carried, added), unknown, tuple(name for name in carried if name in IGNORED))


def _without(carried: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in carried.items() if name not in added}


def _is_kafkas(name: str) -> bool:
    definition = BROKER_CONFIGS.get(name)
    if definition is not None:
        return definition.is_kafka_config
    return name in IGNORED or name.startswith(_PER_LISTENER)


def _listeners(config: BrokerConfig, controller_port: int | None) -> dict[str, str]:
    """Return all settings of listeners."""
    named = [name.upper() for name in config["controller.listener.names"]]
    listeners = parse_endpoints("listeners", parse_list(config.static.get("listeners", ",".join(config["listeners"]))))
    brokers = [endpoint for endpoint in listeners if endpoint.name not in named]
    for endpoint in listeners:
        if endpoint.port == 0:
            raise InvalidConfig("listeners", _address(endpoint), "on a fixed port: Kafka advertises the configured port")
    if "controller" in config["process.roles"] and len(brokers) == len(listeners):
        name = named[0] if named else _free_name(listeners)
        named = [name, *named[1:]]
        listeners.append(Endpoint(name, "127.0.0.1", _controller_port(config, listeners, controller_port)))
    said = {
        "listeners": ",".join(map(_address, listeners)),
        "controller.listener.names": ",".join(named),
        "listener.security.protocol.map": _protocols(config, [*named, *(endpoint.name for endpoint in brokers)]),
    }
    if brokers:
        between = inter_broker_listener(config)
        names = [endpoint.name for endpoint in brokers]
        said["inter.broker.listener.name"] = between if between in names else names[0]
        said["advertised.listeners"] = _advertised(config, brokers)
    return said


def _controller_port(config: BrokerConfig, listeners: Iterable[Endpoint], chosen: int | None) -> int:
    """Return the chosen port, else this node's port in the voters, else the first free number from Kafka's usual one on."""
    if chosen is not None:
        return chosen
    for voter in config["controller.quorum.voters"]:
        return int(voter.rpartition(":")[2])
    taken = {endpoint.port for endpoint in listeners}
    return next(port for port in range(DEFAULT_CONTROLLER_PORT, DEFAULT_CONTROLLER_PORT + 100) if port not in taken)


def _free_name(listeners: Iterable[Endpoint]) -> str:
    taken = {endpoint.name for endpoint in listeners}
    numbered = (f"{CONTROLLER_LISTENER}_{number}" for number in range(2, 100))
    return next(name for name in (CONTROLLER_LISTENER, *numbered) if name not in taken)


def _protocols(config: BrokerConfig, names: Iterable[str]) -> str:
    """Return the map, extended by PLAINTEXT for names that it lacks."""
    given = [entry.strip() for entry in config["listener.security.protocol.map"].split(",") if entry.strip()]
    mapped = {entry.rpartition(":")[0].strip().upper() for entry in given}
    return ",".join([*given, *(f"{name}:PLAINTEXT" for name in names if name not in mapped)])


def _advertised(config: BrokerConfig, brokers: Iterable[Endpoint]) -> str:
    """Return the addresses that clients have used so far: a listener on every interface is advertised as localhost."""
    given = config["advertised.listeners"]
    if given:
        for endpoint in parse_endpoints("advertised.listeners", given):
            if endpoint.port == 0:
                raise InvalidConfig("advertised.listeners", _address(endpoint), "on a fixed port")
        return ",".join(given)
    hosts = ((each, "localhost" if each.host in _EVERY_ADDRESS else each.host) for each in brokers)
    return ",".join(_address(each._replace(host=host)) for each, host in hosts)


def _quorum(config: BrokerConfig, listeners: str, controllers: str, *, log_has_voters: bool) -> dict[str, str]:
    """Return this node as the only voter, or as the bootstrap server if the log has the voters."""
    voters, servers = "controller.quorum.voters", "controller.quorum.bootstrap.servers"
    name = servers if log_has_voters else voters
    if config[name]:
        return {name: ",".join(config[name])}
    first = controllers.partition(",")[0]
    own = next(each for each in parse_endpoints("listeners", listeners.split(",")) if each.name == first)
    place = _place("localhost" if own.host in _EVERY_ADDRESS else own.host, own.port)
    return {name: place if log_has_voters else f"{config['node.id']}@{place}"}


def _address(endpoint: Endpoint) -> str:
    return f"{endpoint.name}://{_place(endpoint.host, endpoint.port)}"


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
