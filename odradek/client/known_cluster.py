"""A client's knowledge of a cluster, without I/O: its nodes and leaders by the last Metadata response, and ListOffsets.

``cluster_client`` asks on an event loop. The commands ask on blocking sockets (``cli.cluster``): asyncio would add 29 ms to
the 190 of ``odradek groups list``.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from odradek.client.api import ConnectFailed, RequestRefused
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.message_types.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

T = TypeVar("T")

Partition = tuple[str, int]
Address = tuple[str, int]


class Node(NamedTuple):
    """A broker of the cluster."""

    node_id: int
    host: str
    port: int


class KnownCluster:
    """The brokers, and the leaders of the topics that were asked for."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.controller_id = -1
        self._leaders: dict[str, dict[int, int]] = {}

    def take(self, response: MetadataResponse) -> None:
        """Remember a response. A topic with an error keeps its leaders."""
        self.nodes = {broker.node_id: Node(broker.node_id, broker.host, broker.port) for broker in response.brokers}
        self.controller_id = response.controller_id
        for topic in response.topics:
            if not topic.error_code:
                self._leaders[str(topic.name)] = {int(one.partition_index): int(one.leader_id) for one in topic.partitions}

    def node(self, node_id: int) -> Node:
        """Return a broker. Raises ConnectFailed if it is unknown."""
        node = self.nodes.get(node_id)
        if node is None:
            raise ConnectFailed(f"the cluster has no broker {node_id}")
        return node

    def leaders(self, topic: str) -> Mapping[int, int]:
        """Return the leader of each partition; -1 for none."""
        return self._leaders.get(topic, {})

    def leader(self, partition: Partition) -> int:
        """Return the leader of a partition. Raises RequestRefused if it has none."""
        topic, index = partition
        leader = self.leaders(topic).get(index)
        if leader is None or leader < 0:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if leader is None else ErrorCode.LEADER_NOT_AVAILABLE
            raise RequestRefused(name_of(partition), code)
        return leader

    def by_leader(self, partitions: Iterable[Partition]) -> dict[int, list[Partition]]:
        """Return the partitions by leader. Raises RequestRefused for a partition without one."""
        by_leader: dict[int, list[Partition]] = {}
        for partition in partitions:
            by_leader.setdefault(self.leader(partition), []).append(partition)
        return by_leader


def name_of(partition: Partition) -> str:
    """Return a partition as ``topic-index``."""
    return f"{partition[0]}-{partition[1]}"


def by_topic(pairs: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    """Return the second items of (topic, item) by topic, in their order."""
    topics: dict[str, list[T]] = {}
    for topic, item in pairs:
        topics.setdefault(topic, []).append(item)
    return topics


def metadata_request(topics: Iterable[str] | None, *, create: bool = False) -> MetadataRequest:
    """Return the request for these topics, or for all with None. With ``create``, brokers that do so create missing ones."""
    named = None if topics is None else [MetadataRequestTopic(name=topic) for topic in topics]
    return MetadataRequest(topics=named, allow_auto_topic_creation=create)


def list_offsets_request(wanted: Mapping[Partition, int], *, is_committed: bool = False) -> ListOffsetsRequest:
    """Return the request for the first offset at or after the timestamp of each partition of one leader."""
    asked = [(topic, ListOffsetsPartition(partition_index=index, timestamp=time)) for (topic, index), time in wanted.items()]
    rows = [ListOffsetsTopic(name=topic, partitions=partitions) for topic, partitions in by_topic(asked).items()]
    return ListOffsetsRequest(replica_id=-1, isolation_level=int(is_committed), topics=rows)


def listed_offsets(response: ListOffsetsResponse) -> dict[Partition, tuple[int, int]]:
    """Return offset and error code of each partition."""
    return {
        (str(topic.name), int(one.partition_index)): (int(one.offset), one.error_code)
        for topic in response.topics
        for one in topic.partitions
    }
