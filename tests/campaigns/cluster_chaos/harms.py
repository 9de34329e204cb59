"""What is done to the cluster: one harm at a time, to one broker, to the controller, or to the network between them.

Each begins, lasts, and is undone. While it lasts, everything goes on once the controller has had its say, where one broker is
away from all others. Two brokers that see the controller and not each other leave transactions waiting, if one coordinates what
has partitions led by the other. A leader that sees the controller and no follower waits with everything.
"""

import signal
from collections.abc import Callable
from enum import Enum
from random import Random
from typing import NamedTuple

from tests.campaigns.cluster_chaos.clients import Violation
from tests.campaigns.cluster_chaos.network import CLIENTS, CONTROLLER, Flow
from tests.campaigns.cluster_chaos.nodes import NODES, SESSION_S, Nodes, between, peers_of


class GoesOn(Enum):
    """What goes on while a harm lasts."""

    EVERYTHING = "orders are acknowledged and carried out"
    ORDERS = "orders are acknowledged"
    NOTHING = "nothing"


class Harm(NamedTuple):
    """``begin`` and ``end`` are given the cluster and the broker that was drawn. It lasts between two times, in s."""

    begin: Callable[[Nodes, int], object]
    end: Callable[[Nodes, int], object]
    goes_on: GoesOn = GoesOn.EVERYTHING
    lasts_s: tuple[float, float] = (SESSION_S, SESSION_S * 2)


def _heal(nodes: Nodes, _: int) -> None:
    nodes.network.heal()


def _held(flows: Callable[[int], list[Flow]], goes_on: GoesOn = GoesOn.EVERYTHING) -> Harm:
    """Nothing arrives."""
    return Harm(lambda nodes, node_id: nodes.network.hold(flows(node_id)), _heal, goes_on)


def _cut(flows: Callable[[int], list[Flow]], goes_on: GoesOn = GoesOn.EVERYTHING) -> Harm:
    """Connections are reset."""
    return Harm(lambda nodes, node_id: nodes.network.cut(flows(node_id)), _heal, goes_on)


def _to_cluster(node_id: int) -> list[Flow]:
    return between(node_id, CONTROLLER, *peers_of(node_id))


def _to_all(node_id: int) -> list[Flow]:
    return between(node_id, CONTROLLER, CLIENTS, *peers_of(node_id))


def _to_next(node_id: int) -> list[Flow]:
    return between(node_id, peers_of(node_id)[0])


def _heard(node_id: int) -> list[Flow]:
    return [(other, node_id) for other in (CONTROLLER, *peers_of(node_id))]


def _said(node_id: int) -> list[Flow]:
    return [(node_id, other) for other in (CONTROLLER, *peers_of(node_id))]


def _all_apart(_: int) -> list[Flow]:
    return [flow for node_id in NODES for flow in between(node_id, *peers_of(node_id))]


def _without_controller(_: int) -> list[Flow]:
    return [flow for node_id in NODES for flow in between(node_id, CONTROLLER)]


def _all(_: int) -> list[Flow]:
    return [flow for node_id in NODES for flow in _to_all(node_id)]


def _start(nodes: Nodes, node_id: int) -> None:
    nodes.brokers.start(node_id)


def _stop(nodes: Nodes, node_id: int) -> None:
    nodes.brokers.signal(node_id, signal.SIGTERM)
    _wait_stopped(nodes, node_id)


def _wait_stopped(nodes: Nodes, node_id: int) -> None:
    if nodes.brokers.wait_ended(node_id) != 0:
        raise Violation(f"broker {node_id} has not stopped in good order: {nodes.brokers.log(node_id)[-3000:]}")


def _kill_alone(nodes: Nodes, node_id: int) -> None:
    """One is cut off, and another killed: nobody has enough replicas."""
    nodes.network.hold(_to_all(node_id))
    nodes.brokers.kill9(peers_of(node_id)[0])


def _restart_other(nodes: Nodes, node_id: int) -> None:
    nodes.network.heal()
    nodes.brokers.start(peers_of(node_id)[0])


def _leave_alone(nodes: Nodes, node_id: int) -> None:
    """One is to stop while its controller is out of reach."""
    nodes.network.hold(between(node_id, CONTROLLER))
    nodes.brokers.signal(node_id, signal.SIGTERM)


def _leave_then(nodes: Nodes, node_id: int) -> None:
    nodes.network.heal()
    _wait_stopped(nodes, node_id)
    nodes.brokers.start(node_id)


_AT_ONCE = (0.0, 0.0)
HARMS = {
    "kill": Harm(lambda nodes, node_id: nodes.brokers.kill9(node_id), _start),
    "kill and start": Harm(lambda nodes, node_id: nodes.brokers.kill9(node_id), _start, GoesOn.NOTHING, _AT_ONCE),
    "stop": Harm(_stop, _start),
    "freeze": Harm(
        lambda nodes, node_id: nodes.brokers.signal(node_id, signal.SIGSTOP),
        lambda nodes, node_id: nodes.brokers.signal(node_id, signal.SIGCONT),
    ),
    "freeze controller": Harm(lambda nodes, _: nodes.freeze_controller(), lambda nodes, _: nodes.thaw_controller()),
    "kill controller": Harm(lambda nodes, _: nodes.kill_controller(), lambda nodes, _: nodes.start_controller()),
    "hold all": _held(_to_all),
    "cut all": _cut(_to_all),
    "hold brokers and controller": _held(_to_cluster),
    "cut brokers and controller": _cut(_to_cluster),
    "hold controller": _held(lambda node_id: between(node_id, CONTROLLER)),
    "cut controller": _cut(lambda node_id: between(node_id, CONTROLLER)),
    "hold brokers": _held(lambda node_id: between(node_id, *peers_of(node_id)), GoesOn.NOTHING),
    "hold one broker": _held(_to_next, GoesOn.ORDERS),
    "cut one broker": _cut(_to_next, GoesOn.ORDERS),
    "hold one way": _held(lambda node_id: [(node_id, peers_of(node_id)[0])], GoesOn.ORDERS),
    "hold clients": _held(lambda node_id: between(node_id, CLIENTS), GoesOn.NOTHING),
    "deafen": _held(_heard),
    "silence": _held(_said),
    "cut all apart": _cut(_all_apart, GoesOn.NOTHING),
    "hold the controller of all": _held(_without_controller),
    "slow": Harm(lambda nodes, _: nodes.network.slow(_all(0), 0.05), _heal),
    "reset": Harm(lambda nodes, node_id: nodes.network.reset(_to_all(node_id)), _heal, GoesOn.EVERYTHING, _AT_ONCE),
    "hold all and kill another": Harm(_kill_alone, _restart_other, GoesOn.NOTHING),
    "stop without controller": Harm(_leave_alone, _leave_then, GoesOn.NOTHING),
}


def deck(random: Random, names: tuple[str, ...]) -> list[tuple[str, int]]:
    """Every harm once, in some order, each with the broker that it is for."""
    drawn = [(name, random.choice(NODES)) for name in names]
    random.shuffle(drawn)
    return drawn
