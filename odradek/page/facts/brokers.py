"""The brokers of the cluster, with their replicas and log directories. For the overview, and for the cluster's own view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.client.admin_apis import DESCRIBE_CLUSTER, DESCRIBE_LOG_DIRS
from odradek.page.facts.source import Partition, ask_nodes, told
from odradek.protocol.message_types.describe_cluster import DescribeClusterRequest
from odradek.protocol.message_types.describe_log_dirs import DescribeLogDirsRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.page.facts.source import Source
    from odradek.protocol.message_types.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
    from odradek.protocol.message_types.describe_log_dirs import (
        DescribableLogDirTopic,
        DescribeLogDirsResponse,
        DescribeLogDirsResult,
    )
    from odradek.protocol.message_types.metadata import MetadataResponse

Sizes = dict[Partition, dict[int, int]]


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """A log directory of a broker. ``found`` is the broker's answer, without the partitions; ``log_bytes`` is their size."""

    found: DescribeLogDirsResult
    replicas: int
    log_bytes: int


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker. ``is_this``: the page is its own. ``silence`` says why it did not answer; empty if it did.

    ``log_bytes`` and ``free_bytes`` are None if the broker does not tell.
    """

    about: DescribeClusterBroker
    is_this: bool
    is_controller: bool
    leaders: int
    preferred_leaders: int
    replicas: int
    in_sync: int
    directories: tuple[LogDirectory, ...]
    silence: str

    @property
    def log_bytes(self) -> int | None:
        """Return the size of all replicas."""
        return sum(each.log_bytes for each in self.directories) if self.directories else None

    @property
    def free_bytes(self) -> int | None:
        """Return the free bytes of the disks."""
        free = [each.found.usable_bytes for each in self.directories if each.found.usable_bytes >= 0]
        return sum(free) if free else None


async def described_cluster(source: Source) -> DescribeClusterResponse:
    """Return the cluster with its brokers, fenced ones, too. Raises Unavailable, Denied."""
    with told():
        return await source.cluster.ask(DESCRIBE_CLUSTER, DescribeClusterRequest(include_fenced_brokers=True))


async def log_directories(
    source: Source, nodes: Iterable[int], topics: Sequence[DescribableLogDirTopic] | None = None
) -> tuple[dict[int, DescribeLogDirsResponse], dict[int, str]]:
    """Return the directories of these brokers, with all or these topics, and the reasons of those that do not answer."""
    answers, silent = await ask_nodes(source, DESCRIBE_LOG_DIRS, dict.fromkeys(nodes, DescribeLogDirsRequest(topics=topics)))
    return {node_id: answer for node_id, answer in answers.items() if not answer.error_code}, silent


def sizes_of(answers: dict[int, DescribeLogDirsResponse]) -> Sizes:
    """Return the size of each partition's replicas, by broker. A replica that moves counts where it is."""
    sizes: Sizes = {}
    for node_id, answer in answers.items():
        for directory in answer.results:
            for topic in directory.topics:
                for one in topic.partitions:
                    if not one.is_future_key:
                        sizes.setdefault((topic.name, one.partition_index), {})[node_id] = one.partition_size
    return sizes


def broker_rows(
    source: Source,
    described: DescribeClusterResponse,
    known: MetadataResponse,
    answers: dict[int, DescribeLogDirsResponse],
    silent: dict[int, str],
) -> tuple[BrokerRow, ...]:
    """Return the brokers, by id."""
    rows = []
    for about in sorted(described.brokers, key=lambda one: one.broker_id):
        node_id = about.broker_id
        held = [one for topic in known.topics for one in topic.partitions if node_id in one.replica_nodes]
        row = BrokerRow(
            about=about,
            is_this=node_id == source.core.node_id,
            is_controller=node_id == described.controller_id,
            leaders=sum(one.leader_id == node_id for one in held),
            preferred_leaders=sum(one.replica_nodes[0] == node_id for one in held),
            replicas=len(held),
            in_sync=sum(node_id in one.isr_nodes for one in held),
            directories=tuple(map(_directory, answers[node_id].results)) if node_id in answers else (),
            silence=silent.get(node_id, ""),
        )
        rows.append(row)
    return tuple(rows)


def _directory(found: DescribeLogDirsResult) -> LogDirectory:
    sizes = [one.partition_size for topic in found.topics for one in topic.partitions]
    return LogDirectory(found._replace(topics=()), len(sizes), sum(sizes))
