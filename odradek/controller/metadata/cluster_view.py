"""Two read-only views of the metadata image: the basis of the controller's decisions, and the cluster as clients see it.

``ClusterView`` has the image and the configs for elections. A feature level can be finalized if the controller and all brokers
support it (KIP-584, KIP-966). Some directory ids are reserved (KIP-858).

``Cluster`` (Kafka: KRaftMetadataCache) has brokers and the state of partitions. A broker counts as alive for a client if it is
registered, not fenced, and has the listener that the client uses.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from odradek.common.config import BrokerConfig
from odradek.controller.metadata.features import ELIGIBLE_LEADER_REPLICAS, refuse_update
from odradek.controller.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from odradek.controller.metadata.topic import Topic
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records import PartitionRecord
from odradek.protocol.metadata_records.nodes import NodeEndpoint, RegisterBrokerRecord

NO_LEADER: Final = -1
# The replica predates directory ids, has no directory yet, or its directory is lost.
MIGRATING: Final = UUID(int=0)
UNASSIGNED: Final = UUID(int=1)
LOST: Final = UUID(int=2)
_FIRST_FREE: Final = 100


class ClusterView:
    """Brokers, partitions and configs of the cluster, as ``image`` has them."""

    def __init__(self, image: MetadataImage, config: BrokerConfig, node_id: int) -> None:
        self.image = image
        self.config = config
        self.node_id = node_id

    @property
    def brokers(self) -> Mapping[int, RegisterBrokerRecord]:
        """Return the registrations, by broker id."""
        return self.image.kept.brokers

    @property
    def has_elr(self) -> bool:
        """Return whether the cluster has eligible leader replicas (KIP-966)."""
        return self.image.features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0

    def is_active(self, broker_id: int) -> bool:
        """Return whether a broker is registered, unfenced, and not about to shut down."""
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.fenced and not broker.in_controlled_shutdown

    def registration(self, broker_id: int, broker_epoch: int) -> RegisterBrokerRecord:
        """Return the registration of the broker at ``broker_epoch``. KafkaError: STALE_BROKER_EPOCH."""
        broker = self.brokers.get(broker_id)
        if broker is None:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker_id} is not registered.")
        if broker.broker_epoch != broker_epoch:
            raise KafkaError(
                ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker_id} is at epoch {broker.broker_epoch}, not {broker_epoch}."
            )
        return broker

    def is_online(self, partition: PartitionRecord, broker_id: int) -> bool:
        """Return whether a broker has the directory of its replica of ``partition`` online."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker_id in partition.replicas and has_online(broker, directory_of(partition, broker_id))

    def default_directory(self, broker_id: int) -> UUID:
        """Return the directory of a new replica on a broker: its only one, otherwise the broker chooses."""
        broker = self.brokers.get(broker_id)
        if broker is None:
            return UNASSIGNED
        if not broker.log_dirs:
            return MIGRATING
        return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED

    def partition(self, topic_name: str, index: int) -> tuple[Topic, PartitionRecord]:
        """Return a partition with its topic. KafkaError: UNKNOWN_TOPIC_OR_PARTITION."""
        topic = self.image.topics.get(topic_name)
        partition = None if topic is None else topic.partitions.get(index)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic_name}")
        if partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic_name}-{index}")
        return topic, partition

    def leaderless(self) -> Iterator[tuple[Topic, PartitionRecord]]:
        """Iterate over the partitions without a leader."""
        return ((topic, partition) for topic, partition in self.image.partitions() if partition.leader == NO_LEADER)

    def leads(self, broker_id: int) -> bool:
        """Return whether a broker leads any partition."""
        return any(partition.leader == broker_id for _, partition in self.image.partitions())

    def min_isr(self, topic: Topic) -> int:
        """Return the required number of in-sync replicas for ``topic``, at most its number of replicas."""
        return min(int(self._topic_config(topic, "min.insync.replicas")), len(topic.partitions[0].replicas))

    def allows_unclean(self, topic: Topic) -> bool:
        """Return whether a replica out of sync may become leader."""
        return self._topic_config(topic, "unclean.leader.election.enable").lower() == "true"

    def _topic_config(self, topic: Topic, name: str) -> str:
        """Return a config from the topic, else from this node, from all brokers, or from the file (same name for all)."""
        for resource in ((TOPIC_RESOURCE, topic.name), (BROKER_RESOURCE, str(self.node_id)), (BROKER_RESOURCE, "")):
            text = self.image.configs(*resource).get(name)
            if text is not None:
                return text.strip()
        return str(self.config[name])


def directories_of(partition: PartitionRecord) -> tuple[UUID, ...]:
    """Return the directory of each replica. A record from before KIP-858 has none, which gives MIGRATING."""
    known = len(partition.directories) == len(partition.replicas)
    return partition.directories if known else (MIGRATING,) * len(partition.replicas)


def directory_of(partition: PartitionRecord, broker_id: int) -> UUID:
    """Return the directory of a broker's replica."""
    return directories_of(partition)[partition.replicas.index(broker_id)]


def is_reserved(directory: UUID | None) -> bool:
    """Return whether an id is never that of a directory."""
    return directory is None or directory.int < _FIRST_FREE


def has_online(broker: RegisterBrokerRecord, directory: UUID) -> bool:
    """Return whether a directory of ``broker`` is not known to be offline. Before KIP-858 none is registered."""
    if directory in (MIGRATING, UNASSIGNED):
        return True
    return directory != LOST and (not broker.log_dirs or directory in broker.log_dirs)


def ensure_brokers_support(view: ClusterView, updates: Iterable[tuple[str, int, int]]) -> None:
    """Raise KafkaError(INVALID_UPDATE_VERSION) unless each broker supports ``updates``, (feature, level, upgrade type)."""
    for name, level, _ in updates:
        for broker in view.brokers.values():
            ranges = {each.name: (each.min_supported_version, each.max_supported_version) for each in broker.features}
            lowest, highest = ranges.get(name, (0, 0))
            if not lowest <= level <= highest:
                refuse_update(f"{name} cannot be set to {level}: broker {broker.broker_id} supports {lowest} to {highest}.")


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

    def nodes(self, listener_name: str, *, are_fenced: bool = False) -> list[ClusterNode]:
        """Return the live brokers, or the registered ones that are fenced, by id."""
        found = (self._registered(node_id, listener_name) for node_id in sorted(self._image.kept.brokers))
        return [_node(*each) for each in found if each is not None and each[0].fenced is are_fenced]

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
            says_listener = is_registered and metadata_version >= _TELLS_LISTENERS
            error = ErrorCode.LISTENER_NOT_FOUND if says_listener else ErrorCode.LEADER_NOT_AVAILABLE
        elif len(replicas) + len(isr) < len(record.replicas) + len(record.isr):
            error = ErrorCode.REPLICA_NOT_AVAILABLE
        return PartitionState(error, index, leader_id, record.leader_epoch, replicas, isr, offline)

    def coordinator(self, topic: str, coordinated_id: str, listener_name: str) -> ClusterNode | None:
        """Return the broker that leads this id's partition of the internal ``topic``; None while it cannot be reached."""
        # Imported here, as clients without groups and transactions never ask.
        from odradek.protocol.hashing import partition_for  # 0.8 ms

        found = self._image.topics.get(topic)
        if found is None:
            return None
        leader = found.partitions[partition_for(coordinated_id, len(found.partitions))].leader
        registered = self._registered(leader, listener_name)
        return None if registered is None or registered[0].fenced else _node(*registered)

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
