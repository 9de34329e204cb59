"""What the leaders of partitions know of the other brokers, and whom they ask: the Replication of ``in_sync_replicas``."""

from collections.abc import Callable
from uuid import UUID

from odradek.broker.cluster.alter_partitions import AlterPartitions
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.quorum.leader_discovery import Address
from odradek.broker.replica.in_sync_replicas import CommittedIsr, Proposal
from odradek.broker.replica.replication_quota import ReplicationQuota
from odradek.protocol.errors import KafkaError
from odradek.timing.clock import Clock
from odradek.timing.reply import Reply


class BrokersView:
    """A Replication. ``listener_name`` is the listener by which brokers reach each other."""

    def __init__(
        self,
        image: MetadataImage,
        *,
        node_id: int,
        own_epoch: Callable[[], int],
        listener_name: str,
        max_lag_ms: int,
        clock: Clock,
        alter_partitions: AlterPartitions,
        leader_quota: ReplicationQuota | None = None,
    ) -> None:
        self.node_id = node_id
        self.max_lag_ms = max_lag_ms
        self.leader_quota = leader_quota
        self._image = image
        self._own_epoch = own_epoch
        self._listener_name = listener_name
        self._clock = clock
        self._alter_partitions = alter_partitions

    def monotonic_ms(self) -> float:
        """Part of Replication."""
        return self._clock.monotonic_ms()

    def broker_epoch(self, node_id: int) -> int | None:
        """Part of Replication."""
        if node_id == self.node_id:
            return self._own_epoch()
        broker = self._image.kept.brokers.get(node_id)
        if broker is None or broker.fenced or broker.in_controlled_shutdown:
            return None
        return broker.broker_epoch

    def alter_partition(self, proposal: Proposal) -> Reply[CommittedIsr | KafkaError]:
        """Part of Replication."""
        return self._alter_partitions.propose(proposal)

    def is_known(self, topic: str | bytes | UUID, index: int) -> bool:
        """Whether the cluster has a partition, by the topic's name, id, or the id's bytes."""
        topics = self._image.topics
        if isinstance(topic, str):
            known = topics.get(topic)
        else:
            known = self._image.topics_by_id.get(UUID(bytes=topic) if isinstance(topic, bytes) else topic)
        return known is not None and index in known.partitions

    def address_of(self, node_id: int) -> Address | None:
        """Where brokers reach a broker; None where it is not alive."""
        broker = self._image.kept.brokers.get(node_id)
        if broker is None or broker.fenced:
            return None
        return next(((each.host, each.port) for each in broker.end_points if each.name == self._listener_name), None)
