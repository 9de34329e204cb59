"""Checks across configs, which no single config's validator can do. The rules are those of Kafka's ``validateValues``.

A node has a role: it is either a broker of a cluster whose controllers are elsewhere, or the only controller of a cluster. A
controller may have a broker in the same process, and a listener for other brokers. A configuration is refused if the node would
silently begin a cluster of its own.

``group.consumer.assignors`` names odradek's own assignors, and those that other packages register as entry points of the group
``odradek.assignors``. An entry point has the assignor's name; its object is a function as described by
``coordinator.group.assignor.spec.Assign``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from odradek.common.config.definitions import InvalidConfig
from odradek.common.config.listener_config import MAX_PORT, check_listeners, parse_endpoints, per_ip_overrides
from odradek.common.config.table_server import MOST_REQUEST_BYTES
from odradek.common.config.topic_config import check_defaults

_ALONE = "a node with its own controller is the only voter"
_BROKER = ("broker",)
_CONTROLLER = ("controller",)
_VOTERS = "controller.quorum.voters"
_SERVERS = "controller.quorum.bootstrap.servers"


def check_roles(values: Mapping[str, Any], listeners: Sequence[str]) -> None:
    """Raise InvalidConfig unless this node's role and its quorum fit together. ``listeners`` include those of controllers."""
    roles = values["process.roles"]
    if roles == _BROKER:
        _check_broker(values, listeners)
        return
    if roles == _CONTROLLER:
        _check_controller(values, listeners)
    voters = _parsed_voters(values[_VOTERS])
    if voters and list(voters) != [values["node.id"]]:
        raise InvalidConfig(_VOTERS, ",".join(values[_VOTERS]), f"one voter, this node, {values['node.id']}@HOST:PORT: {_ALONE}")
    servers = values[_SERVERS]
    if servers:
        names = {name.upper() for name in values["controller.listener.names"]}
        own = {endpoint.port for endpoint in parse_endpoints("listeners", listeners) if endpoint.name in names}
        _check_own_servers(servers, own)


def _check_controller(values: Mapping[str, Any], listeners: Sequence[str]) -> None:
    """Raise InvalidConfig unless a controller without a broker listens for brokers, and for nobody else."""
    names = {name.upper() for name in values["controller.listener.names"]}
    if not names:
        raise InvalidConfig("controller.listener.names", "", "the names of this controller's listeners")
    for endpoint in parse_endpoints("listeners", listeners):
        if endpoint.name not in names:
            raise InvalidConfig("listeners", endpoint.name, f"among controller.listener.names: {', '.join(sorted(names))}")


def quorum_nodes(voters: Sequence[str], servers: Sequence[str]) -> list[tuple[int | None, str, int]]:
    """Return the configured controllers as (node id, host, port); the id is None for a bare address. Raises InvalidConfig."""
    known = [(node_id, *place) for node_id, place in _parsed_voters(voters).items()]
    return [*known, *((None, *place) for place in _addresses(servers))]


def _check_broker(values: Mapping[str, Any], listeners: Sequence[str]) -> None:
    voters = _parsed_voters(values[_VOTERS])
    servers = _addresses(values[_SERVERS])
    if not voters and not servers:
        raise InvalidConfig(_VOTERS, "", f"the controllers of the cluster, or {_SERVERS}: process.roles is broker")
    if values["node.id"] in voters:
        raise InvalidConfig(
            _VOTERS, ",".join(values[_VOTERS]), f"other nodes than this one, {values['node.id']}, which is a broker"
        )
    names = {name.upper() for name in values["controller.listener.names"]}
    if not names:
        raise InvalidConfig("controller.listener.names", "", "the name of the controllers' listener")
    for endpoint in parse_endpoints("listeners", listeners):
        if endpoint.name in names:
            raise InvalidConfig("listeners", endpoint.name, "a listener for clients: process.roles is broker")


def _parsed_voters(voters: Sequence[str]) -> dict[int, tuple[str, int]]:
    found = {}
    for voter in voters:
        voter_id, at, address = voter.partition("@")
        place = _address(address)
        if not (at and voter_id.isascii() and voter_id.isdigit()) or place is None:
            raise InvalidConfig(_VOTERS, voter, "a list of ID@HOST:PORT")
        found[int(voter_id)] = place
    return found


def _addresses(servers: Sequence[str]) -> list[tuple[str, int]]:
    found = []
    for server in servers:
        place = _address(server)
        if place is None:
            raise InvalidConfig(_SERVERS, server, "a list of HOST:PORT")
        found.append(place)
    return found


def _check_own_servers(servers: Sequence[str], own_ports: set[int]) -> None:
    addresses = _addresses(servers)
    if len(addresses) > 1 or addresses[0][1] not in own_ports:
        allowed = f"the address of this node's own listener for controllers (controller.listener.names): {_ALONE}"
        raise InvalidConfig(_SERVERS, ",".join(servers), allowed)


def _address(address: str) -> tuple[str, int] | None:
    """Return host and port; None for a malformed address."""
    host, colon, port = address.rpartition(":")
    is_address = bool(host and colon) and port.isascii() and port.isdigit() and int(port) <= MAX_PORT
    return (host.strip("[]"), int(port)) if is_address else None


_KEY = "group.consumer.assignors"
OWN = ("uniform", "range")
ENTRY_POINTS = "odradek.assignors"


def third_party_assignors(names: Iterable[str]) -> Mapping[str, Callable[[Any], Any]]:
    """Load the assignors of ``names`` that are not odradek's own. Raises InvalidConfig if one cannot be loaded."""
    others = [name for name in names if name not in OWN]
    if not others:
        return {}
    from importlib.metadata import entry_points  # 13 ms

    registered = entry_points(group=ENTRY_POINTS)
    found = {}
    for name in others:
        points = list(registered.select(name=name))
        if len(points) != 1:
            known = ", ".join(sorted(registered.names)) or "none"
            count = f"; {len(points)} have this name" if points else ""
            raise InvalidConfig(_KEY, name, f"{', '.join(OWN)} or an entry point in {ENTRY_POINTS} (there are: {known}{count})")
        where = points[0].value
        try:
            loaded = points[0].load()
        except Exception as failure:
            raise InvalidConfig(_KEY, name, f"an entry point that can be loaded: {where}: {failure!r}") from failure
        if not callable(loaded):
            raise InvalidConfig(_KEY, name, f"an entry point that is a function: {where} is of type {type(loaded).__name__}")
        found[name] = loaded
    return found


_MIB = 1024 * 1024


def check(values: Mapping[str, Any]) -> None:
    """Check the values across configs. Raises InvalidConfig, which names the config that is most likely wrong."""
    check_listeners(values)
    _check_connections(values)
    _check_retention(values)
    _check_groups(values)
    check_defaults(values)
    third_party_assignors(values["group.consumer.assignors"])
    if values["log.cleaner.dedupe.buffer.size"] // values["log.cleaner.threads"] <= _MIB:
        raise InvalidConfig(
            "log.cleaner.dedupe.buffer.size",
            str(values["log.cleaner.dedupe.buffer.size"]),
            "more than 1 MiB for each of log.cleaner.threads",
        )


def _check_connections(values: Mapping[str, Any]) -> None:
    exceptions = per_ip_overrides(values["max.connections.per.ip.overrides"])
    if values["max.connections.per.ip"] == 0 and not exceptions:
        raise InvalidConfig("max.connections.per.ip", "0", "at least 1 if max.connections.per.ip.overrides is not set")
    max_bytes = values["queued.max.request.bytes"]
    # With our default, a configuration made for Kafka behaves as with Kafka's default, -1.
    if 0 < max_bytes < values["socket.request.max.bytes"] and max_bytes != MOST_REQUEST_BYTES:
        raise InvalidConfig(
            "queued.max.request.bytes",
            str(max_bytes),
            "at least socket.request.max.bytes, or not positive for no limit",
        )


# Configs of groups that must lie between their ``min.`` and ``max.`` configs.
_OF_GROUPS: Final = {
    "group.consumer.": ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"),
    "group.share.": (
        *("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"),
        *("delivery.count.limit", "partition.max.record.locks", "record.lock.duration.ms"),
    ),
    "group.streams.": ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"),
}


def _check_groups(values: Mapping[str, Any]) -> None:
    for prefix, names in _OF_GROUPS.items():
        for name in names:
            value, low, high = values[prefix + name], values[f"{prefix}min.{name}"], values[f"{prefix}max.{name}"]
            if low > high:
                raise InvalidConfig(f"{prefix}max.{name}", str(high), f"at least {prefix}min.{name}, {low}")
            if not low <= value <= high:
                allowed = f"from {prefix}min.{name}, {low}, to {prefix}max.{name}, {high}"
                raise InvalidConfig(prefix + name, str(value), allowed)
        interval, timeout = f"{prefix}heartbeat.interval.ms", f"{prefix}session.timeout.ms"
        if values[interval] >= values[timeout]:
            raise InvalidConfig(interval, str(values[interval]), f"less than {timeout}, {values[timeout]}")
    sessions, members = values["group.share.max.share.sessions"], values["group.share.max.size"]
    if sessions < members:
        raise InvalidConfig("group.share.max.share.sessions", str(sessions), f"at least group.share.max.size, {members}")
    standbys, most = values["group.streams.num.standby.replicas"], values["group.streams.max.standby.replicas"]
    if standbys > most:
        allowed = f"at most group.streams.max.standby.replicas, {most}"
        raise InvalidConfig("group.streams.num.standby.replicas", str(standbys), allowed)


def _check_retention(values: Mapping[str, Any]) -> None:
    for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        if values[name] is not None:
            if values[name] == 0:
                raise InvalidConfig(name, "0", "at least 1, or -1 to keep records for ever")
            return
