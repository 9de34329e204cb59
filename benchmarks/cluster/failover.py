"""Failover: from the kill -9 of the broker that matters to the client's next answer.

The load generator finds the broker, kills it, and tries again all the time. Afterwards the broker is started again, and the next
round begins when every partition has all its replicas in sync.
"""

import json
from collections.abc import Mapping, Sequence
from statistics import median

from benchmarks import load_tool
from benchmarks.cluster.clusters import Cluster
from benchmarks.report import Figure
from benchmarks.scenarios import Target

# Kafka's defaults would have the controller wait nine seconds, whoever the broker is; the same for both, and shorter.
SETTINGS: Mapping[str, str] = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}
KINDS: Mapping[str, str] = {
    "produce": "of a leader, to the next record s",
    "commit": "of a group's coordinator, to the next commit s",
    "transaction": "of a transaction's coordinator, to its commit s",
}
_TITLE = "kill -9"
_TARGET = Target(1.0, at_least=False)


def measure(cluster: Cluster, kind: str) -> float:
    """One failover, in seconds. Raises LoadFailed."""
    nodes = ",".join(f"{node_id}:{pid}" for node_id, pid in cluster.broker_pids().items())
    told = json.loads(load_tool.run(f"failover-{kind}", cluster.address, (f"-nodes={nodes}", "-keep")))
    cluster.restart(int(told["node"]))
    load_tool.run("await-in-sync", cluster.address)
    return float(told["seconds"])


def figures(rounds: Mapping[str, Mapping[str, Sequence[float]]]) -> list[Figure]:
    """The medians, of rounds by kind and cluster."""
    return [
        Figure(_TITLE, title, {cluster: median(runs) for cluster, runs in rounds.get(kind, {}).items()}, _TARGET)
        for kind, title in KINDS.items()
        if kind in rounds
    ]
