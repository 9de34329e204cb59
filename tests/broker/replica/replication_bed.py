"""A partition that this broker leads, with followers that fetch, and a controller that answers when it is told to."""

from uuid import UUID

from odradek.broker.replica.in_sync_replicas import NO_EPOCH, CommittedIsr, InSyncReplicas
from odradek.broker.replica.partition import Partition
from odradek.protocol.records import Record, build_batch
from odradek.storage.log.log import Log
from odradek.storage.log.log_config import LogConfig
from odradek.timing.reply import Reply
from tests.memory_filesystem import MemoryFileSystem

TOPIC_ID = UUID(int=7)
LEADER, FIRST, SECOND = 1, 2, 3
LEADER_EPOCH, PARTITION_EPOCH = 4, 9
MAX_LAG_MS = 30_000


def memory_log(index=0, config=None):
    """The log of a partition of ``t`` on a disk in memory."""
    return Log.open(
        MemoryFileSystem(),
        f"/data/t-{index}",
        "t",
        index,
        config or LogConfig(),
        clean=True,
        now_ms=0,
        warn=lambda *_, **__: None,
    )


def lead(replication, partition, epoch, partition_epoch, isr, min_in_sync):
    """Let ``partition`` be led, with replicas on three brokers."""
    followers = InSyncReplicas(
        replication,
        topic_id=TOPIC_ID,
        partition=partition.index,
        leader_epoch=epoch,
        partition_epoch=partition_epoch,
        replicas=(LEADER, FIRST, SECOND),
        isr=isr,
        epoch_start_offset=partition.log.log_end_offset,
        min_in_sync=min_in_sync,
        on_change=partition.replication_changed,
    )
    partition.become_leader(epoch, followers)
    return followers


class FakeReplication:
    """Part of Replication. ``epochs`` are those of the brokers that may be in sync."""

    def __init__(self):
        self.node_id = LEADER
        self.max_lag_ms = MAX_LAG_MS
        self.leader_quota = None
        self.now_ms = 1_000_000.0
        self.epochs = {LEADER: 10, FIRST: 20, SECOND: 30}
        self.asked = []

    def monotonic_ms(self):
        return self.now_ms

    def broker_epoch(self, node_id):
        return self.epochs.get(node_id)

    def alter_partition(self, proposal):
        reply = Reply()
        self.asked.append((proposal, reply))
        return reply

    @property
    def proposals(self):
        return [proposal for proposal, _ in self.asked]

    def accept(self):
        """The last proposal becomes the ISR."""
        proposal, reply = self.asked[-1]
        isr = frozenset(node_id for node_id, _ in proposal.isr)
        reply.complete(CommittedIsr(proposal.leader_epoch, proposal.partition_epoch + 1, isr))

    def refuse(self, error):
        self.asked[-1][1].complete(error)


class ReplicationBed:
    """Brokers 1, 2 and 3 have replicas; 1 leads."""

    def __init__(self, isr=(LEADER, FIRST, SECOND), min_in_sync=1, records=0, config=None):
        self.replication = FakeReplication()
        self.min_in_sync = min_in_sync
        self.woken = 0
        self.log = memory_log(config=config)
        self.partition = Partition("t", 0, TOPIC_ID, LEADER_EPOCH, self.log, self._wake)
        if records:
            self._append_locally(records)
        self.followers = lead(self.replication, self.partition, LEADER_EPOCH, PARTITION_EPOCH, isr, lambda: self.min_in_sync)
        # Since it leads.
        self.woken = 0

    def _wake(self, _):
        self.woken += 1

    def _append_locally(self, count):
        for _ in range(count):
            self.log.append(build_batch([Record(timestamp=0, value=b"v")]), leader_epoch=0, now_ms=0)

    def append(self, count=1):
        """The last offset."""
        batch = build_batch([Record(timestamp=0, value=b"v") for _ in range(count)])
        return self.partition.append(batch, 0).last_offset

    def fetch(self, node_id, offset, epoch=None):
        """A follower's Fetch from ``offset`` on."""
        epoch = self.replication.epochs.get(node_id, NO_EPOCH) if epoch is None else epoch
        self.partition.fetched_by_follower(node_id, epoch, offset, 0)

    @property
    def high_watermark(self):
        return self.partition.high_watermark

    @property
    def isr(self):
        return set(self.followers.isr.committed)
