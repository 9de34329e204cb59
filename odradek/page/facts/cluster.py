"""The cluster: its brokers, their replicas, the partitions in trouble, the controller's quorum, and features."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek import __version__
from odradek.client.admin_apis import API_VERSIONS, DESCRIBE_QUORUM
from odradek.client.api import ClientError
from odradek.controller.metadata.topic import CLUSTER_METADATA_TOPIC
from odradek.page.facts.brokers import broker_rows, described_cluster, log_directories
from odradek.page.facts.source import hides, metadata, rights
from odradek.protocol.message_types.api_versions import ApiVersionsRequest
from odradek.protocol.message_types.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData

if TYPE_CHECKING:
    from odradek.page.facts.brokers import BrokerRow
    from odradek.page.facts.source import Source
    from odradek.protocol.message_types.describe_quorum import PartitionData
    from odradek.protocol.message_types.metadata import MetadataResponsePartition

MOST_PARTITIONS: Final = 1_000


class TroubledPartition(NamedTuple):
    """A partition with replicas out of sync, or without a leader."""

    topic: str
    about: MetadataResponsePartition


class Feature(NamedTuple):
    """A feature. ``level`` is the finalized one, 0 if it is off. ``lowest`` and ``highest`` are what this broker supports."""

    name: str
    level: int
    lowest: int
    highest: int


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The cluster. ``quorum`` is None if the user may not see it."""

    cluster_id: str
    brokers: tuple[BrokerRow, ...]
    topics: int
    partitions: int
    troubled: tuple[TroubledPartition, ...]
    more_troubled: int
    quorum: PartitionData | None
    features: tuple[Feature, ...]
    is_partial: bool


async def cluster(source: Source) -> ClusterFacts:
    """Return the cluster. Raises Unavailable, Denied."""
    user, known, described = await asyncio.gather(rights(source), metadata(source, None), described_cluster(source))
    (answers, silent), found_quorum, found_features = await asyncio.gather(
        log_directories(source, [broker.node_id for broker in known.brokers]), quorum(source), features(source)
    )
    partitions = [TroubledPartition(topic.name or "", one) for topic in known.topics for one in topic.partitions]
    troubled = [
        each for each in partitions if each.about.leader_id < 0 or len(each.about.isr_nodes) < len(each.about.replica_nodes)
    ]
    return ClusterFacts(
        cluster_id=described.cluster_id,
        brokers=broker_rows(source, described, known, answers, silent),
        topics=len(known.topics),
        partitions=len(partitions),
        troubled=tuple(troubled[:MOST_PARTITIONS]),
        more_troubled=max(len(troubled) - MOST_PARTITIONS, 0),
        quorum=found_quorum,
        features=found_features,
        is_partial=hides(source, user, known),
    )


async def quorum(source: Source) -> PartitionData | None:
    """Return the quorum of the metadata log; None if the user may not see it, or nobody answers."""
    asked = RequestTopicData(topic_name=CLUSTER_METADATA_TOPIC, partitions=[RequestPartitionData(partition_index=0)])
    try:
        answer = await source.cluster.ask(DESCRIBE_QUORUM, DescribeQuorumRequest(topics=[asked]))
    except ClientError:
        return None
    found = [one for topic in answer.topics for one in topic.partitions if not one.error_code]
    return None if answer.error_code or not found else found[0]


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
