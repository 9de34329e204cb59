"""The cluster: its brokers, their replicas, the partitions in trouble, the controller's quorum, and features."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odradek import __version__
from odradek.client.admin_apis import API_VERSIONS, DESCRIBE_CLUSTER, DESCRIBE_LOG_DIRS, DESCRIBE_QUORUM
from odradek.client.api import ClientError
from odradek.controller.metadata.topic import CLUSTER_METADATA_TOPIC
from odradek.page.facts.overview import hides
from odradek.page.facts.source import ask_nodes, metadata, rights, told
from odradek.page.watch import error_name
from odradek.protocol.message_types.api_versions import ApiVersionsRequest
from odradek.protocol.message_types.describe_cluster import DescribeClusterRequest
from odradek.protocol.message_types.describe_log_dirs import DescribeLogDirsRequest
from odradek.protocol.message_types.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.page.facts.source import Source
    from odradek.protocol.message_types.describe_cluster import DescribeClusterBroker
    from odradek.protocol.message_types.describe_log_dirs import DescribeLogDirsResponse, DescribeLogDirsResult
    from odradek.protocol.message_types.describe_quorum import ReplicaState
    from odradek.protocol.message_types.metadata import MetadataResponsePartition

MOST_PARTITIONS: Final = 1_000


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """A log directory of a broker. ``error`` is empty unless it is offline."""

    path: str
    error: str
    replicas: int
    log_bytes: int
    total_bytes: int | None
    free_bytes: int | None


@dataclass(frozen=True, slots=True)
class ClusterBroker:
    """A broker. ``is_fenced``: registered, but not serving. ``silence`` says why it did not answer; empty if it did."""

    node_id: int
    host: str
    port: int
    rack: str | None
    is_this: bool
    is_fenced: bool
    is_controller: bool
    leaders: int
    preferred_leaders: int
    replicas: int
    in_sync: int
    directories: tuple[LogDirectory, ...]
    silence: str


@dataclass(frozen=True, slots=True)
class TroubledPartition:
    """A partition with replicas out of sync, or without a leader."""

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """A voter or an observer of the metadata log. ``lag`` counts records. The times are None if the leader has none."""

    node_id: int
    directory_id: str
    log_end_offset: int
    lag: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None
    is_leader: bool


@dataclass(frozen=True, slots=True)
class Quorum:
    """The quorum of the metadata log."""

    leader: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature. ``level`` is the finalized one, 0 if it is off. ``lowest`` and ``highest`` are what this broker supports."""

    name: str
    level: int
    lowest: int
    highest: int


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The cluster. ``quorum`` is None if the user may not see it."""

    cluster_id: str
    this_broker: int
    brokers: tuple[ClusterBroker, ...]
    topics: int
    partitions: int
    troubled: tuple[TroubledPartition, ...]
    more_troubled: int
    quorum: Quorum | None
    features: tuple[Feature, ...]
    is_partial: bool


async def cluster(source: Source) -> ClusterFacts:
    """Return the cluster. Raises Unavailable, Denied."""
    user, known = await asyncio.gather(rights(source), metadata(source, None))
    with told():
        described = await source.cluster.ask(DESCRIBE_CLUSTER, DescribeClusterRequest(include_fenced_brokers=True))
    nodes = [broker.node_id for broker in known.brokers]
    (disks, silent), found_quorum, found_features = await asyncio.gather(
        ask_nodes(source, DESCRIBE_LOG_DIRS, dict.fromkeys(nodes, DescribeLogDirsRequest(topics=None))),
        quorum(source),
        features(source),
    )
    partitions = [(str(topic.name), one) for topic in known.topics for one in topic.partitions]
    troubled = [
        _troubled(name, one) for name, one in partitions if one.leader_id < 0 or len(one.isr_nodes) < len(one.replica_nodes)
    ]
    held = [one for _, one in partitions]
    return ClusterFacts(
        cluster_id=described.cluster_id,
        this_broker=source.core.node_id,
        brokers=tuple(
            _broker(source, each, described.controller_id, held, (disks.get(each.broker_id), silent.get(each.broker_id, "")))
            for each in sorted(described.brokers, key=lambda one: one.broker_id)
        ),
        topics=len(known.topics),
        partitions=len(partitions),
        troubled=tuple(troubled[:MOST_PARTITIONS]),
        more_troubled=max(len(troubled) - MOST_PARTITIONS, 0),
        quorum=found_quorum,
        features=found_features,
        is_partial=hides(source, user, known),
    )


async def quorum(source: Source) -> Quorum | None:
    """Return the quorum of the metadata log; None if the user may not see it, or nobody answers."""
    asked = RequestTopicData(topic_name=CLUSTER_METADATA_TOPIC, partitions=[RequestPartitionData(partition_index=0)])
    try:
        answer = await source.cluster.ask(DESCRIBE_QUORUM, DescribeQuorumRequest(topics=[asked]))
    except ClientError:
        return None
    found = [one for topic in answer.topics for one in topic.partitions if not one.error_code]
    if answer.error_code or not found:
        return None
    log = found[0]
    end_offset = max((one.log_end_offset for one in log.current_voters if one.replica_id == log.leader_id), default=0)
    return Quorum(
        leader=log.leader_id,
        leader_epoch=log.leader_epoch,
        high_watermark=log.high_watermark,
        voters=_replicas(log.current_voters, log.leader_id, end_offset),
        observers=_replicas(log.observers, log.leader_id, end_offset),
    )


async def features(source: Source) -> tuple[Feature, ...]:
    """Return the features, finalized ones with their levels; none if nobody answers."""
    try:
        request = ApiVersionsRequest(client_software_name="odradek", client_software_version=__version__)
        answer = await source.cluster.ask(API_VERSIONS, request)
    except ClientError:
        return ()
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    ranges = {each.name: (each.min_version, each.max_version) for each in answer.supported_features}
    return tuple(Feature(name, levels.get(name, 0), *ranges.get(name, (0, 0))) for name in sorted(levels.keys() | ranges.keys()))


def _replicas(states: Sequence[ReplicaState], leader: int, end_offset: int) -> tuple[QuorumReplica, ...]:
    return tuple(
        QuorumReplica(
            node_id=each.replica_id,
            directory_id=str(each.replica_directory_id or ""),
            log_end_offset=each.log_end_offset,
            lag=max(end_offset - each.log_end_offset, 0),
            last_fetch_ms=each.last_fetch_timestamp if each.last_fetch_timestamp >= 0 else None,
            last_caught_up_ms=each.last_caught_up_timestamp if each.last_caught_up_timestamp >= 0 else None,
            is_leader=each.replica_id == leader,
        )
        for each in sorted(states, key=lambda one: one.replica_id)
    )


def _broker(
    source: Source,
    broker: DescribeClusterBroker,
    controller_id: int,
    partitions: Sequence[MetadataResponsePartition],
    asked: tuple[DescribeLogDirsResponse | None, str],
) -> ClusterBroker:
    node_id = broker.broker_id
    held = [one for one in partitions if node_id in one.replica_nodes]
    answer, silence = asked
    return ClusterBroker(
        node_id=node_id,
        host=broker.host,
        port=broker.port,
        rack=broker.rack,
        is_this=node_id == source.core.node_id,
        is_fenced=broker.is_fenced,
        is_controller=node_id == controller_id,
        leaders=sum(one.leader_id == node_id for one in held),
        preferred_leaders=sum(one.replica_nodes[0] == node_id for one in held),
        replicas=len(held),
        in_sync=sum(node_id in one.isr_nodes for one in held),
        directories=() if answer is None or answer.error_code else tuple(map(_directory, answer.results)),
        silence=silence,
    )


def _directory(found: DescribeLogDirsResult) -> LogDirectory:
    sizes = [one.partition_size for topic in found.topics for one in topic.partitions]
    return LogDirectory(
        path=found.log_dir,
        error=error_name(found.error_code) if found.error_code else "",
        replicas=len(sizes),
        log_bytes=sum(sizes),
        total_bytes=found.total_bytes if found.total_bytes >= 0 else None,
        free_bytes=found.usable_bytes if found.usable_bytes >= 0 else None,
    )


def _is_troubled(found: MetadataResponsePartition) -> bool:
    return found.leader_id < 0 or len(found.isr_nodes) < len(found.replica_nodes)


def _troubled(topic: str, found: MetadataResponsePartition) -> TroubledPartition:
    leader = int(found.leader_id)
    return TroubledPartition(
        topic=topic,
        partition=int(found.partition_index),
        leader=leader if leader >= 0 else None,
        replicas=tuple(map(int, found.replica_nodes)),
        in_sync=tuple(map(int, found.isr_nodes)),
        offline=tuple(map(int, found.offline_replicas)),
    )
