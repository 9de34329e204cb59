"""The cluster as a broker shows it to clients: brokers, and the state of partitions (Kafka: KRaftMetadataCache).

A broker counts as alive for a client if it is registered, not fenced, and has the listener that the client uses.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from odradek.controller.metadata.cluster_view import UNASSIGNED, has_online
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.metadata.topic import Topic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.metadata_records import PartitionRecord
from odradek.protocol.metadata_records.nodes import NodeEndpoint, RegisterBrokerRecord

NO_NODE = -1
# Versions of Metadata: version 0 has no place for offline replicas, versions before 6 none for a missing listener.
_TELLS_ALL_REPLICAS: Final = 1
_TELLS_LISTENERS: Final = 6


class ClusterNode(NamedTuple):
    """A broker, and its address for the clients of a listener."""

    node_id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False


class PartitionState(NamedTuple):
    """The state of a partition as clients see it. Without a leader (-1) it has an error.

    The fields are in the order of a partition in a Metadata response.
    """

    error_code: ErrorCode
    partition_index: int
    leader_id: int
    leader_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]
    offline_replicas: Sequence[int]


class Cluster:
    """The cluster as this broker's (``node_id``) current image shows it."""

    def __init__(self, image: MetadataImage, node_id: int, serves: Callable[[str, int], bool] = lambda *_: True) -> None:
        """Take ``serves``, which tells whether this broker has a partition's log open and so can serve it as its leader."""
        self._image = image
        self._node_id = node_id
        self._serves = serves

    @property
    def controller_id(self) -> int:
        """Return this broker, which forwards to the controller; if it is fenced, the first broker that is not.

        Kafka returns any live broker, as brokers of a KRaft cluster do not reveal where the controller is.
        """
        alive = [node_id for node_id, broker in sorted(self._image.kept.brokers.items()) if not broker.fenced]
        return self._node_id if self._node_id in alive else next(iter(alive), NO_NODE)

    def has_partition(self, topic: str | bytes | UUID, index: int) -> bool:
        """Return whether the cluster has a partition, by the topic's name, id, or the id's bytes."""
        topics, topics_by_id = self._image.topics, self._image.topics_by_id
        if isinstance(topic, str):
            known = topics.get(topic)
        else:
            known = topics_by_id.get(UUID(bytes=topic) if isinstance(topic, bytes) else topic)
        return known is not None and index in known.partitions

    def nodes(self, listener_name: str) -> list[ClusterNode]:
        """Return the live brokers, by id."""
        return self._nodes(listener_name, are_fenced=False)

    def fenced_nodes(self, listener_name: str) -> list[ClusterNode]:
        """Return the registered brokers that are fenced, by id."""
        return self._nodes(listener_name, are_fenced=True)

    def partition_state(self, topic: Topic, index: int, listener_name: str, metadata_version: int) -> PartitionState:
        """Return the state of a partition, with the errors of that version of Metadata."""
        record = topic.partitions[index]
        replicas, isr = record.replicas, record.isr
        if metadata_version < _TELLS_ALL_REPLICAS:
            replicas, isr = (tuple(each for each in ids if self._is_alive(each, listener_name)) for ids in (replicas, isr))
        offline = [node_id for node_id in record.replicas if self._is_offline(record, node_id, listener_name)]
        leader_id = record.leader
        error = ErrorCode.NONE
        if leader_id == self._node_id and not self._serves(topic.name, index):
            # The leader's log is damaged, or not open yet.
            leader_id, error = NO_NODE, ErrorCode.LEADER_NOT_AVAILABLE
            offline = [node_id for node_id in record.replicas if node_id in offline or node_id == self._node_id]
        elif self._registered(leader_id, listener_name) is None:
            leader_id = NO_NODE
            is_registered = record.leader in self._image.kept.brokers
            is_told = is_registered and metadata_version >= _TELLS_LISTENERS
            error = ErrorCode.LISTENER_NOT_FOUND if is_told else ErrorCode.LEADER_NOT_AVAILABLE
        elif len(replicas) + len(isr) < len(record.replicas) + len(record.isr):
            error = ErrorCode.REPLICA_NOT_AVAILABLE
        return PartitionState(error, index, leader_id, record.leader_epoch, replicas, isr, offline)

    def coordinator(self, topic: str, coordinated_id: str, listener_name: str) -> ClusterNode | None:
        """Return the broker that leads this id's partition of the internal ``topic``; None while it cannot be reached."""
        # Imported here, as clients without groups and transactions never ask.
        from odradek.coordinator.runtime.hashing import partition_for

        found = self._image.topics.get(topic)
        if found is None:
            return None
        leader = found.partitions[partition_for(coordinated_id, len(found.partitions))].leader
        registered = self._registered(leader, listener_name)
        return None if registered is None or registered[0].fenced else _node(*registered)

    def _nodes(self, listener_name: str, *, are_fenced: bool) -> list[ClusterNode]:
        found = (self._registered(node_id, listener_name) for node_id in sorted(self._image.kept.brokers))
        return [_node(*each) for each in found if each is not None and each[0].fenced is are_fenced]

    def _registered(self, node_id: int, listener_name: str) -> tuple[RegisterBrokerRecord, NodeEndpoint] | None:
        """Return a broker and its listener of this name; None if it is not registered or has no such listener."""
        broker = self._image.kept.brokers.get(node_id)
        if broker is not None:
            for endpoint in broker.end_points:
                if endpoint.name == listener_name:
                    return broker, endpoint
        return None

    def _is_alive(self, node_id: int, listener_name: str) -> bool:
        found = self._registered(node_id, listener_name)
        return found is not None and not found[0].fenced

    def _is_offline(self, record: PartitionRecord, node_id: int, listener_name: str) -> bool:
        if not self._is_alive(node_id, listener_name):
            return True
        place = record.replicas.index(node_id)
        directory = record.directories[place] if place < len(record.directories) else UNASSIGNED
        return not has_online(self._image.kept.brokers[node_id], directory)


def _node(broker: RegisterBrokerRecord, endpoint: NodeEndpoint) -> ClusterNode:
    return ClusterNode(broker.broker_id, endpoint.host, endpoint.port, broker.rack, broker.fenced)
