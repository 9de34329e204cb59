"""Replication: which partitions this broker leads, and how many replicas of them are in sync."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.metrics.definitions import Kind, Metric, Section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.metrics.definitions import Reading
    from odradek.broker.metrics.metered import MeteredBroker


def _gauge(mbean: str, help_: str) -> Metric:
    labelled = f"kafka.server:type=ReplicaManager,name={mbean}"
    return Metric(f"kafka_server_replicamanager_{mbean.lower()}", Kind.GAUGE, (), labelled, help_)


LEADERS = _gauge("LeaderCount", "Partitions that this broker leads.")
UNDER_REPLICATED = _gauge("UnderReplicatedPartitions", "Partitions led here that have replicas out of sync.")
UNDER_MIN_ISR = _gauge("UnderMinIsrPartitionCount", "Partitions led here with fewer replicas in sync than min.insync.replicas.")
AT_MIN_ISR = _gauge("AtMinIsrPartitionCount", "Partitions led here with just as many replicas in sync as min.insync.replicas.")


def _read(broker: MeteredBroker) -> Iterator[Reading]:
    leaders = under_replicated = under_min_isr = at_min_isr = 0
    for partition in broker.partitions:
        if partition.leader is None or partition.log is None:
            continue
        leaders += 1
        followers = partition.leader.followers
        if followers is None:
            # The one replica there is: as many as there must be.
            at_min_isr += 1
            continue
        in_sync = len(followers.isr.committed)
        under_replicated += in_sync < followers.replica_count
        under_min_isr += in_sync < followers.min_in_sync
        at_min_isr += in_sync == followers.min_in_sync
    yield LEADERS, [((), leaders)]
    yield UNDER_REPLICATED, [((), under_replicated)]
    yield UNDER_MIN_ISR, [((), under_min_isr)]
    yield AT_MIN_ISR, [((), at_min_isr)]


REPLICATION_SECTION = Section("Replication", (LEADERS, UNDER_REPLICATED, UNDER_MIN_ISR, AT_MIN_ISR), _read)
