"""The checks of a node's role. A cluster of other nodes' is refused: this node would begin one of its own without a word."""

from collections.abc import Mapping, Sequence
from typing import Any

from odradek.broker.config.definitions import InvalidConfig
from odradek.broker.config.endpoints import MAX_PORT, parse_endpoints
from odradek.broker.config.table_quorum import ROLES

_ALONE = "odradek is its own controller, and cannot join another quorum yet"


def check_roles(values: Mapping[str, Any], listeners: Sequence[str]) -> None:
    """Raise InvalidConfig unless this node is broker and controller, alone. ``listeners`` are those of controllers, too."""
    roles = values["process.roles"]
    if set(roles) != set(ROLES):
        raise InvalidConfig("process.roles", ",".join(roles), f"{','.join(ROLES)}: {_ALONE}")
    _check_voters(values["controller.quorum.voters"], values["node.id"])
    servers = values["controller.quorum.bootstrap.servers"]
    if servers:
        names = {name.upper() for name in values["controller.listener.names"]}
        own = {endpoint.port for endpoint in parse_endpoints("listeners", listeners) if endpoint.name in names}
        _check_bootstrap_servers(servers, own)


def _check_voters(voters: Sequence[str], node_id: int) -> None:
    key = "controller.quorum.voters"
    for voter in voters:
        voter_id, at, address = voter.partition("@")
        if not (at and voter_id.isascii() and voter_id.isdigit()) or _port(address) is None:
            raise InvalidConfig(key, voter, "a list of ID@HOST:PORT")
    if voters and [int(voter.partition("@")[0]) for voter in voters] != [node_id]:
        raise InvalidConfig(key, ",".join(voters), f"one voter, this node, {node_id}@HOST:PORT: {_ALONE}")


def _check_bootstrap_servers(servers: Sequence[str], own_ports: set[int]) -> None:
    key = "controller.quorum.bootstrap.servers"
    for server in servers:
        if _port(server) is None:
            raise InvalidConfig(key, server, "a list of HOST:PORT")
    if len(servers) > 1 or _port(servers[0]) not in own_ports:
        allowed = f"the address of this node's own listener for controllers (controller.listener.names): {_ALONE}"
        raise InvalidConfig(key, ",".join(servers), allowed)


def _port(address: str) -> int | None:
    """The port of HOST:PORT; None where that is not what it is."""
    host, colon, port = address.rpartition(":")
    is_port = bool(host and colon) and port.isascii() and port.isdigit() and int(port) <= MAX_PORT
    return int(port) if is_port else None
