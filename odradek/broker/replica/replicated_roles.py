"""The roles of partitions on a broker in a cluster: leader with followers, or follower of another broker.

A leader checks every ``replica.lag.time.max.ms / 2`` for replicas that have fallen behind (Kafka: ReplicaManager).

``BrokersView`` implements the Replication of ``in_sync_replicas``: it gives leaders the other brokers' state and the controller.
"""

from collections.abc import Callable
from uuid import UUID

from odradek.broker.replica.controller_requests import AlterPartitions, DirectoryAssignments
from odradek.broker.replica.in_sync_replicas import CommittedIsr, InSyncReplicas, Proposal, Replication
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.partition_directories import PartitionRoles
from odradek.broker.replica.partitions import Partitions
from odradek.broker.replica.replica_fetchers import ReplicaFetchers
from odradek.broker.replica.replication_quota import ReplicationQuota, ReplicationThrottles
from odradek.common.config.dynamic import ResourceType
from odradek.controller.metadata.cluster_view import MIGRATING, directory_of
from odradek.controller.metadata.delta import MetadataDelta
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.quorum.leader_discovery import Address
from odradek.protocol.errors import KafkaError
from odradek.protocol.metadata_records import PartitionRecord
from odradek.timing.clock import Clock
from odradek.timing.reply import Reply
from odradek.timing.timer import Timer


class ReplicatedRoles(PartitionRoles):
    """The PartitionRoles of a broker in a cluster, and a MetadataPublisher for brokers and configs. Loop thread only."""

    def __init__(
        self,
        replication: Replication,
        fetchers: ReplicaFetchers,
        assignments: DirectoryAssignments,
        throttles: ReplicationThrottles,
        partitions: Partitions,
        timer: Timer,
        *,
        held_high_watermark: Callable[[Partition], int],
        min_in_sync: Callable[[str], int],
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        """``held_high_watermark`` returns the value in the data directory's checkpoint, 0 if there is none.

        ``min_in_sync`` returns the current ``min.insync.replicas`` of a topic.
        """
        super().__init__(replication.node_id)
        self._replication = replication
        self._fetchers = fetchers
        self._assignments = assignments
        self._throttles = throttles
        self._partitions = partitions
        self._timer = timer
        self._held_high_watermark = held_high_watermark
        self._configured_min_in_sync = min_in_sync
        # Cached, as each append asks for it.
        self._min_in_sync: dict[str, int] = {}
        self._call_soon = call_soon
        # Partitions that follow a new leader, or the same one in a new epoch, by topic id and index.
        self._turned: dict[tuple[UUID, int], Partition] = {}

    def start(self) -> None:
        """Check periodically for replicas that have fallen behind."""
        self._timer.call_after(self._replication.max_lag_ms / 2, self._shrink)

    def begin(self, partition: Partition, record: PartitionRecord, directory_id: UUID | None) -> None:
        """Restore the checkpointed high watermark; report the directory if the metadata name another."""
        log = partition.log
        if log is not None:
            held = self._held_high_watermark(partition)
            partition.high_watermark = min(max(held, log.log_start_offset), log.log_end_offset)
        assigned = directory_of(record, self.node_id)
        if directory_id is not None and assigned not in (MIGRATING, directory_id):
            self._assignments.assign([(partition.topic_id, partition.index, directory_id)])

    def take(self, partition: Partition, record: PartitionRecord) -> None:
        """Lead or follow the partition, as ``record`` says."""
        if record.leader == self.node_id:
            self._lead(partition, record)
        elif partition.follower is None or (partition.leader_id, partition.leader_epoch) != (record.leader, record.leader_epoch):
            partition.become_follower(record.leader, record.leader_epoch)
            if not self._turned:
                self._call_soon(self._follow)
            self._turned[partition.topic_id, partition.index] = partition

    def leave(self, partition: Partition) -> None:
        """Stop fetching the partition."""
        self._turned.pop((partition.topic_id, partition.index), None)
        self._fetchers.leave([partition])

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:  # noqa: ARG002
        """Apply changed configs, and fetch from leaders that are back."""
        if any(kind in (ResourceType.TOPIC, ResourceType.BROKER) for kind, _ in delta.configs):
            self._min_in_sync.clear()
        self._throttles.publish(delta)
        if any(kind == ResourceType.BROKER for kind, _ in delta.configs):
            # The new configs apply only after all publishers have run.
            self._call_soon(self._fetchers.resize)
        if delta.brokers:
            # A leader may be alive again, or have a new address.
            fetched = {id(each) for followed in self._fetchers.leaders.values() for each in followed}
            self._fetchers.follow([each for each in self._partitions if each.follower is not None and id(each) not in fetched])

    def _lead(self, partition: Partition, record: PartitionRecord) -> None:
        self.leave(partition)
        log = partition.log
        if log is None:
            partition.become_leader(record.leader_epoch)
            return
        followers = None if partition.leader is None else partition.leader.followers
        if followers is not None and partition.leader_epoch == record.leader_epoch:
            followers.committed(record.replicas, record.isr, record.partition_epoch)
            return
        in_sync = InSyncReplicas(
            self._replication,
            topic_id=partition.topic_id,
            partition=partition.index,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            replicas=record.replicas,
            isr=record.isr,
            epoch_start_offset=log.log_end_offset,
            min_in_sync=lambda: self._min_in_sync_of(partition.topic),
            on_change=partition.replication_changed,
        )
        partition.become_leader(record.leader_epoch, in_sync)
        partition.replication_changed()

    def _min_in_sync_of(self, topic_name: str) -> int:
        found = self._min_in_sync.get(topic_name)
        if found is None:
            found = self._min_in_sync[topic_name] = self._configured_min_in_sync(topic_name)
        return found

    def _follow(self) -> None:
        turned, self._turned = self._turned, {}
        self._fetchers.follow(turned.values())

    def _shrink(self) -> None:
        for partition in self._partitions:
            if partition.leader is not None and partition.leader.followers is not None and partition.log is not None:
                partition.leader.followers.shrink(partition.log.log_end_offset)
        self.start()


class BrokersView:
    """Implements Replication. ``listener_name`` is the listener through which brokers reach each other."""

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
        """Return the monotonic time in ms."""
        return self._clock.monotonic_ms()

    def broker_epoch(self, node_id: int) -> int | None:
        """Return the epoch of a broker that may join the in-sync replicas; None for any other."""
        if node_id == self.node_id:
            return self._own_epoch()
        broker = self._image.kept.brokers.get(node_id)
        if broker is None or broker.fenced or broker.in_controlled_shutdown:
            return None
        return broker.broker_epoch

    def alter_partition(self, proposal: Proposal) -> Reply[CommittedIsr | KafkaError]:
        """Propose new in-sync replicas to the controller."""
        return self._alter_partitions.propose(proposal)

    def address_of(self, node_id: int) -> Address | None:
        """Return a broker's address for other brokers; None if it is not alive."""
        broker = self._image.kept.brokers.get(node_id)
        if broker is None or broker.fenced:
            return None
        return next(((each.host, each.port) for each in broker.end_points if each.name == self._listener_name), None)
