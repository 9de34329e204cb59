"""The partition changes when a broker is fenced, unfenced, shut down or unregistered, or loses a directory.

A broker that goes leaves the in-sync sets, and its partitions get other leaders. A broker that comes may lead partitions without
a leader. The records are those of Kafka's ``ReplicationControlManager``.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final
from uuid import UUID

from odradek.controller.cluster.partition_change import Election, PartitionChange
from odradek.controller.metadata.cluster_view import ClusterView, directory_of
from odradek.controller.metadata.topic import Topic
from odradek.protocol.metadata_records import MetadataRecord, PartitionRecord
from odradek.protocol.metadata_records.nodes import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)

_NOBODY: Final = -1
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
    view: ClusterView, partitions: Partitions, *, removed: int = _NOBODY, added: int = _NOBODY, unclean: int = _NOBODY
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
        if unclean != _NOBODY:
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
