"""Changes of partitions: their leaders, in-sync replicas and replicas, and the changes when a broker comes or goes.

``PartitionChange`` (Kafka: PartitionChangeBuilder) changes one partition. The steps, in Kafka's order: complete a reassignment
whose replicas are in sync; make replicas that leave the in-sync set eligible (KIP-966); elect a leader. The leader epoch rises
with each record that names a leader. So an unchanged leader is named only if the epoch must rise: when a replica is removed.
``MovingReplicas`` (KIP-455) has a partition's replicas, those to be removed at the end, and those being added.

A broker may be fenced, unfenced, shut down or unregistered, or lose a directory. A broker that goes leaves the in-sync sets, and
its partitions get other leaders. A broker that comes may lead partitions without a leader. The records are those of Kafka's
``ReplicationControlManager``.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Final, NamedTuple
from uuid import UUID

from odradek.controller.metadata.cluster_view import NO_LEADER, ClusterView, directories_of, directory_of
from odradek.controller.metadata.topic import Topic
from odradek.protocol.metadata_records import MetadataRecord, PartitionRecord
from odradek.protocol.metadata_records.base import NO_LEADER_CHANGE, NO_RECOVERY_STATE_CHANGE
from odradek.protocol.metadata_records.nodes import BrokerRegistrationChangeRecord, RegisterBrokerRecord, UnregisterBrokerRecord
from odradek.protocol.metadata_records.partition_changes import PartitionChangeRecord


class MovingReplicas(NamedTuple):
    """The replicas of a partition. During a reassignment they include those ``removing`` and ``adding``."""

    replicas: Sequence[int]
    removing: Sequence[int]
    adding: Sequence[int]

    @classmethod
    def of(cls, partition: PartitionRecord) -> "MovingReplicas":
        """Make the moving replicas of a partition."""
        return cls(partition.replicas, partition.removing_replicas, partition.adding_replicas)

    @classmethod
    def between(cls, current: Sequence[int], target: Sequence[int]) -> "MovingReplicas":
        """Return the start of a move from ``current`` to ``target``. Unwanted replicas stay until the others are in sync."""
        removing = sorted(set(current) - set(target))
        return cls((*target, *removing), removing, sorted(set(target) - set(current)))

    @property
    def is_moving(self) -> bool:
        """Return whether a reassignment is under way."""
        return bool(self.removing or self.adding)

    @property
    def original(self) -> list[int]:
        """Return the replicas without the added ones."""
        return [replica for replica in self.replicas if replica not in self.adding]

    @property
    def target(self) -> list[int]:
        """Return the replicas without those to be removed."""
        return [replica for replica in self.replicas if replica not in self.removing]

    def completed(self, isr: Sequence[int]) -> tuple[list[int], list[int]] | None:
        """Return (replicas, in-sync replicas) at the end of the move; None while it is incomplete.

        All added replicas must be in sync. If there will be fewer replicas than before, all remaining ones must be.
        """
        staying = self.target
        in_sync = [replica for replica in isr if replica not in self.removing]
        # A replica added by an earlier move and removed by a later one is not awaited.
        adding = [replica for replica in self.adding if replica not in self.removing]
        awaited = staying if len(adding) < len(self.removing) else adding
        if not self.is_moving or not staying or not in_sync or not set(awaited) <= set(in_sync):
            return None
        return staying, in_sync


RECOVERED: Final = 0
RECOVERING: Final = 1


class Election(Enum):
    """The wanted leader: the first replica, in sync; any in-sync one, the leader first; or any if none is in sync."""

    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


class PartitionChange:
    """A change being made. Its attributes hold the partition's new values, at first those of ``partition``.

    ``is_acceptable`` tells whether a broker can lead, if its replica may. With ``min_isr`` replicas in sync, no other replica is
    eligible.
    """

    def __init__(
        self,
        partition: PartitionRecord,
        *,
        is_acceptable: Callable[[int], bool],
        default_directory: Callable[[int], UUID],
        min_isr: int,
        has_elr: bool,
    ) -> None:
        self.isr: Sequence[int] = partition.isr
        self.replicas: Sequence[int] = partition.replicas
        self.removing: Sequence[int] = partition.removing_replicas
        self.adding: Sequence[int] = partition.adding_replicas
        self.recovery_state = partition.leader_recovery_state
        self.election = Election.ONLINE
        # Brokers whose last shutdown was unclean: they may have lost records.
        self.unclean_brokers: Sequence[int] = ()
        # Directories of replicas, where given.
        self.directories: dict[int, UUID] = {}
        self._partition = partition
        self._elr: Sequence[int] = partition.eligible_leader_replicas or ()
        self._is_acceptable = is_acceptable
        self._default_directory = default_directory
        self._min_isr = min_isr
        self._has_elr = has_elr

    def record(self) -> PartitionChangeRecord | None:
        """Return the record that makes the change; None if nothing changes."""
        partition = self._partition
        self._complete_reassignment()
        self._make_eligible()
        leader, is_unclean = self._elected()
        isr: Sequence[int] | None = None
        recovery_state = NO_RECOVERY_STATE_CHANGE
        if leader == partition.leader:
            # A removed replica must not count as in sync any more, so the leader begins a new epoch.
            leader = NO_LEADER_CHANGE if set(partition.replicas) <= set(self.replicas) else partition.leader
        elif leader in self._elr:
            self.isr = (leader,)
            self._elr = [each for each in self._elr if each != leader]
        elif is_unclean:
            isr = (leader,)
            if partition.leader_recovery_state != RECOVERING:
                recovery_state = RECOVERING
        if isr is not None or not self._has_elr:
            self._elr = ()
        # Keep the last in-sync replica if no replica is eligible.
        if isr is None and (self.isr or self._has_elr):
            isr = self.isr
        if self.recovery_state != partition.leader_recovery_state:
            recovery_state = self.recovery_state
        return self._record_of_changes(leader, isr, recovery_state)

    def _record_of_changes(self, leader: int, isr: Sequence[int] | None, recovery_state: int) -> PartitionChangeRecord | None:
        partition = self._partition
        changes = {
            "isr": None if isr is None else _changed(isr, partition.isr),
            "replicas": _changed(self.replicas, partition.replicas),
            "removing_replicas": _changed(self.removing, partition.removing_replicas),
            "adding_replicas": _changed(self.adding, partition.adding_replicas),
            "eligible_leader_replicas": _changed(self._elr, partition.eligible_leader_replicas or ()),
            "last_known_elr": self._last_known_leader(leader),
        }
        directories = self._changed_directories()
        is_named = leader != NO_LEADER_CHANGE or recovery_state != NO_RECOVERY_STATE_CHANGE or directories is not None
        if not is_named and all(value is None for value in changes.values()):
            return None
        return PartitionChangeRecord(
            partition_id=partition.partition_id,
            topic_id=partition.topic_id,
            leader=leader,
            leader_recovery_state=recovery_state,
            directories=directories,
            **changes,
        )

    def _changed_directories(self) -> tuple[UUID, ...] | None:
        partition = self._partition
        if self.replicas is partition.replicas and not self.directories:
            return None
        before = directories_of(partition)
        known = dict(zip(partition.replicas, before, strict=True)) | self.directories
        after = tuple(known[each] if each in known else self._default_directory(each) for each in self.replicas)
        return None if after == before else after

    def _complete_reassignment(self) -> None:
        if not (self.removing or self.adding):
            return
        completed = MovingReplicas(self.replicas, self.removing, self.adding).completed(self.isr)
        if completed is not None:
            self.replicas, self.isr = completed
            self.removing = self.adding = ()

    def _make_eligible(self) -> None:
        """Make replicas that leave a too small ISR eligible leaders, as they have every acknowledged record."""
        if not self._has_elr:
            return
        if len(self.isr) >= self._min_isr:
            self._elr = ()
            return
        # ELR' = (ELR + ISR) - ISR' - brokers that have shut down uncleanly
        self._elr = sorted({*self._elr, *self._partition.isr} - {*self.isr, *self.unclean_brokers})

    def _elected(self) -> tuple[int, bool]:
        """Return the leader, and whether it may lack acknowledged records."""
        leader = self._partition.leader
        preferred = self.replicas[0]
        if self.election is Election.PREFERRED and self._may_lead(preferred):
            return preferred, False
        for replica in (leader, *self.replicas):
            if self._may_lead(replica):
                return replica, False
        if self._can_last_known_lead():
            return (self._partition.last_known_elr or ())[0], True
        if self.election is Election.UNCLEAN:
            for replica in self.replicas:
                if self._is_acceptable(replica):
                    return replica, True
        return NO_LEADER, False

    def _may_lead(self, replica: int) -> bool:
        candidates = self.isr or self._elr
        return replica in candidates and self._is_acceptable(replica)

    def _can_last_known_lead(self) -> bool:
        last_known = self._partition.last_known_elr or ()
        return (
            self._has_elr
            and not self._elr
            and not self.isr
            and len(last_known) == 1
            and last_known[0] in self.replicas
            and self._is_acceptable(last_known[0])
        )

    def _last_known_leader(self, leader: int) -> tuple[int, ...] | None:
        """Return the last leader of a partition without one. It is dropped when there is a leader again."""
        last_known = self._partition.last_known_elr or ()
        if not self._has_elr:
            return None
        if leader == NO_LEADER and not last_known and self._partition.leader != NO_LEADER:
            return (self._partition.leader,)
        return () if leader >= 0 and last_known else None


def _changed(new: Sequence[int], old: Sequence[int]) -> tuple[int, ...] | None:
    return None if tuple(new) == tuple(old) else tuple(new)


_NO_BROKER: Final = -1
_FENCE: Final = 1
_UNFENCE: Final = -1

Partitions = Iterable[tuple[Topic, PartitionRecord]]


def change_of(
    view: ClusterView, topic: Topic, partition: PartitionRecord, is_acceptable: Callable[[int], bool] | None = None
) -> PartitionChange:
    """Return a blank change of a partition. ``is_acceptable`` tests brokers in place of ``view.is_active``."""
    acceptable = is_acceptable or view.is_active
    return PartitionChange(
        partition,
        is_acceptable=lambda broker_id: acceptable(broker_id) and view.is_online(partition, broker_id),
        default_directory=view.default_directory,
        min_isr=view.min_isr(topic),
        has_elr=view.has_elr,
    )


def fenced(view: ClusterView, broker: RegisterBrokerRecord) -> list[MetadataRecord]:
    """Return the records that fence ``broker``, which is silent or asks to lead nothing."""
    return [*_without(view, broker.broker_id), fence_only(broker)]


def fence_only(broker: RegisterBrokerRecord) -> BrokerRegistrationChangeRecord:
    """Return the record that fences ``broker``, without regard to its partitions."""
    return BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, fenced=_FENCE)


def unfenced(view: ClusterView, broker: RegisterBrokerRecord) -> list[MetadataRecord]:
    """Return the records that unfence ``broker`` and let it lead leaderless partitions where it may."""
    change = BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, fenced=_UNFENCE)
    return [change, *_updates(view, view.leaderless(), added=broker.broker_id)]


def in_controlled_shutdown(view: ClusterView, broker: RegisterBrokerRecord) -> list[MetadataRecord]:
    """Return the records that move leaderships away from ``broker``, which is about to stop."""
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, in_controlled_shutdown=1
    )
    changes = [] if broker.in_controlled_shutdown else [change]
    return [*changes, *_without(view, broker.broker_id)]


def shut_down(view: ClusterView, broker_id: int, *, was_clean: bool) -> list[MetadataRecord]:
    """Return the records for the end of a previous incarnation, which may have lost unsynced records."""
    if was_clean or not view.has_elr:
        return _without(view, broker_id)
    return [
        *_updates(view, _in_sync(view, broker_id), unclean=broker_id),
        *_updates(view, _eligible(view, broker_id), unclean=broker_id),
    ]


def unregistered(view: ClusterView, broker: RegisterBrokerRecord) -> list[MetadataRecord]:
    """Return the records that remove ``broker`` from the cluster."""
    return [
        *_without(view, broker.broker_id),
        *_updates(view, _eligible(view, broker.broker_id), removed=broker.broker_id),
        UnregisterBrokerRecord(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch),
    ]


def directories_offline(view: ClusterView, broker: RegisterBrokerRecord, offline: Sequence[UUID | None]) -> list[MetadataRecord]:
    """Return the records for failed directories of ``broker``, whose replicas go offline."""
    failed = [directory for directory in broker.log_dirs if directory in offline]
    records: list[MetadataRecord] = []
    for directory in failed:
        records += _updates(view, _in_directory(view, broker.broker_id, directory), removed=broker.broker_id)
    if failed:
        left = tuple(directory for directory in broker.log_dirs if directory not in offline)
        records.append(
            BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, log_dirs=left)
        )
    return records


def directories_cordoned(broker: RegisterBrokerRecord, cordoned: Sequence[UUID | None] | None) -> list[MetadataRecord]:
    """Return the records that keep new replicas out of the directories ``cordoned``."""
    if cordoned is None or (broker.cordoned_log_dirs is not None and set(broker.cordoned_log_dirs) == set(cordoned)):
        return []
    named = tuple(directory for directory in cordoned if directory is not None)
    return [BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, cordoned_log_dirs=named)]


def offline_replicas(view: ClusterView, broker_id: int, partitions: Partitions) -> list[MetadataRecord]:
    """Return the records for the broker's replicas of ``partitions``, in a directory that it has lost."""
    return _updates(view, partitions, removed=broker_id)


def _without(view: ClusterView, broker_id: int) -> list[MetadataRecord]:
    return _updates(view, _in_sync(view, broker_id), removed=broker_id)


def _updates(
    view: ClusterView, partitions: Partitions, *, removed: int = _NO_BROKER, added: int = _NO_BROKER, unclean: int = _NO_BROKER
) -> list[MetadataRecord]:
    """Return the changes of ``partitions``, where there are any.

    Brokers ``removed`` and ``unclean`` can no longer lead; ``unclean`` is not eligible either. Broker ``added`` can lead,
    although it is still fenced in the image.
    """

    def is_acceptable(broker_id: int) -> bool:
        return broker_id not in (removed, unclean) and (broker_id == added or view.is_active(broker_id))

    records: list[MetadataRecord] = []
    for topic, partition in partitions:
        change = change_of(view, topic, partition, is_acceptable)
        if view.allows_unclean(topic):
            change.election = Election.UNCLEAN
        if unclean != _NO_BROKER:
            change.unclean_brokers = (unclean,)
        change.isr = tuple(replica for replica in partition.isr if replica not in (removed, unclean))
        record = change.record()
        if record is not None:
            records.append(record)
    return records


def _in_sync(view: ClusterView, broker_id: int) -> Partitions:
    return ((topic, partition) for topic, partition in view.image.partitions() if broker_id in partition.isr)


def _eligible(view: ClusterView, broker_id: int) -> Partitions:
    for topic, partition in view.image.partitions():
        if broker_id in (partition.eligible_leader_replicas or ()):
            yield topic, partition


def _in_directory(view: ClusterView, broker_id: int, directory: UUID) -> Partitions:
    for topic, partition in view.image.partitions():
        if broker_id in partition.replicas and directory_of(partition, broker_id) == directory:
            yield topic, partition
