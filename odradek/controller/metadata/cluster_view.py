"""The read-only basis of the controller's decisions: the image, and the configs for elections.

A feature level can be finalized if the controller and all brokers support it (KIP-584, KIP-966). Some directory ids are reserved
(KIP-858).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from uuid import UUID

from odradek.common.config import BrokerConfig
from odradek.controller.metadata.features import BOOTSTRAP_RECORDS, CLUSTER, ELIGIBLE_LEADER_REPLICAS, MIN_ISR, refuse_update
from odradek.controller.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from odradek.controller.metadata.topic import Topic
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records import ConfigRecord, FeatureLevelRecord, MetadataRecord, PartitionRecord
from odradek.protocol.metadata_records.nodes import RegisterBrokerRecord

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
        """Return the directory of a new replica on a broker."""
        return default_directory(self.brokers.get(broker_id))

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
    return partition.directories or (MIGRATING,) * len(partition.replicas)


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


def default_directory(broker: RegisterBrokerRecord | None) -> UUID:
    """Return the directory of a new replica on ``broker``: its only one, otherwise the broker chooses."""
    if broker is None:
        return UNASSIGNED
    if not broker.log_dirs:
        return MIGRATING
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED


def first_records(min_isr: int) -> Sequence[MetadataRecord]:
    """Return the records that the log of a new cluster begins with.

    If leaders are elected from eligible replicas, one ``min.insync.replicas`` applies to all brokers.
    """
    return (
        *BOOTSTRAP_RECORDS,
        FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS, feature_level=1),
        ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=CLUSTER, name=MIN_ISR, value=str(min_isr)),
    )


def ensure_brokers_support(view: ClusterView, updates: Iterable[tuple[str, int, int]]) -> None:
    """Raise KafkaError(INVALID_UPDATE_VERSION) unless each broker supports ``updates``, (feature, level, upgrade type)."""
    for name, level, _ in updates:
        for broker in view.brokers.values():
            ranges = {each.name: (each.min_supported_version, each.max_supported_version) for each in broker.features}
            lowest, highest = ranges.get(name, (0, 0))
            if not lowest <= level <= highest:
                refuse_update(f"{name} cannot be set to {level}: broker {broker.broker_id} supports {lowest} to {highest}.")
