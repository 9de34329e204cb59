"""Start-up: from spawning a cluster on fresh directories to its first record with three replicas, acknowledged and fetched back.

The client is the load generator's ``first-replicated``. It is started beforehand, waits for the addresses, and then tries all the
time. When it has the record back, the cluster idles for two seconds, and the memory of all its processes is added up.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks import load_tool, processes
from benchmarks.cluster.clusters import BROKERS, Cluster
from benchmarks.peers import BrokerFailed
from benchmarks.report import Figure
from benchmarks.scenarios import Target

_IDLE_S = 2.0
_TITLE = "three brokers, start-up"
_TARGET = Target(1 / 6, at_least=False)


@dataclass(frozen=True, slots=True)
class Start:
    """One start: seconds to the first record; the memory of all processes, and their CPU seconds in a second, when idle."""

    seconds: float
    pss_mib: float
    rss_mib: float
    idle_cpu_s_per_s: float


def first_record(cluster: Cluster) -> float:
    """Start a cluster, which its caller ends; the seconds to a first record. Raises BrokerFailed if none comes back."""
    with load_tool.waiting("first-replicated", (f"-replicas={BROKERS}", "-topic=warm-up")) as tell:
        began_s = time.perf_counter()
        cluster.spawn()
        answer = tell(cluster.address)
        took_s = time.perf_counter() - began_s
    if not answer:
        raise BrokerFailed(f"no record came back from {cluster.name}")
    return took_s


def measure(cluster: Cluster) -> Start:
    """One start. Raises BrokerFailed."""
    took_s = first_record(cluster)
    cpu_before_s = sum(map(processes.cpu_seconds_of, cluster.pids))
    time.sleep(_IDLE_S)
    idle_cpu_s = sum(map(processes.cpu_seconds_of, cluster.pids)) - cpu_before_s
    memory = [processes.memory_of(pid) for pid in cluster.pids]
    return Start(took_s, sum(each.pss_mib for each in memory), sum(each.rss_mib for each in memory), idle_cpu_s / _IDLE_S)


def figures(starts: Mapping[str, Sequence[Start]]) -> list[Figure]:
    """The medians of each cluster's starts."""

    def medians(name: str) -> dict[str, float]:
        return {cluster: median(getattr(start, name) for start in runs) for cluster, runs in starts.items()}

    return [
        Figure(_TITLE, "spawn to first record s", medians("seconds"), _TARGET),
        Figure(_TITLE, "idle memory (PSS) MiB", medians("pss_mib"), _TARGET),
        Figure(_TITLE, "idle memory (RSS) MiB", medians("rss_mib")),
        Figure(_TITLE, "idle CPU s / s", medians("idle_cpu_s_per_s")),
    ]
