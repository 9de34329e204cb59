"""The checks of a node's role.

A node is either a broker of a cluster whose controllers are elsewhere, or the only controller of a cluster. A controller may
have a broker in the same process, and a listener for other brokers. A configuration is refused if the node would silently
begin a cluster of its own.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from odradek.common.config.definitions import InvalidConfig
from odradek.common.config.endpoints import MAX_PORT, parse_endpoints

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
