"""Histories of a quorum and of an observer that is killed, each from its seed: what was committed is what the observer has.

Controllers append, commit, elect each other with or without the records that were not committed, and replace their logs by
snapshots. Nodes die, answers are lost, and the observer, which writes snapshots of its own, too, ends and starts again: killed at
any operation of its disk, or with the machine's power.
"""

import asyncio
from contextlib import suppress
from random import Random

import pytest

from odradek.controller.metadata.cluster_metadata import PublishingOrder
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.metadata.loader import MetadataLoader
from odradek.controller.metadata.metadata_log import MetadataBatch
from odradek.controller.metadata.snapshot_files import SnapshotId
from odradek.controller.metadata.snapshot_generator import records_of
from odradek.protocol.metadata_records import decode
from odradek.protocol.metadata_records.log_control import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from odradek.protocol.record_batch import iter_batches, read_header
from odradek.protocol.records import read_records
from odradek.testing.disk import MemoryDisk
from odradek.timing.clock import VirtualClock
from tests.client.net import settle
from tests.controller.metadata.storage_doubles import Killed, MortalFileSystem
from tests.controller.metadata.test_difference import Mirror, mirror_of, records
from tests.controller.metadata.test_snapshots import state
from tests.controller.quorum.fake_quorum import LOG_DIR, Following, Quorum

STEPS = 25
SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "500", "metadata.max.retention.bytes": "1000"}
KINDS = ["topic", "topic", "partition", "leader", "remove", "config", "feature", "broker", "unregister", "ids"]


def batch_end(batch):
    return next(iter_batches(batch))[1].next_offset


class History:
    """One history. ``committed`` are all batches of the log that every leader has, however much a snapshot has replaced."""

    def __init__(self, seed):
        self.rng = Random(seed)
        self.quorum = Quorum()
        self.disk = MortalFileSystem()
        self.leader = self.quorum.elect(1, epoch=1)
        self.committed = []
        self.changes = 0
        self.following = None

    async def run(self):
        steps = [self.append, self.append, self.commit, self.elect, self.snapshot, self.disturb, self.endanger, self.wait]
        try:
            for _ in range(STEPS):
                self.rng.choice(steps)()
                await self.go_on()
            self.leader.instead = self.leader.instead_of_chunks = []
            self.spare()
            # A leader that was deposed without a word hears of it.
            self.quorum.elect(self.leader.node_id, self.leader.epoch)
            self.append()
            self.commit(all_of_it=True)
            await self.go_on()
            observer = self.following.observer
            await self.following.until(lambda: observer.leader and observer.leader.node_id == self.leader.node_id)
            await self.following.caught_up(self.leader)
            self.check()
        finally:
            await self.stop()

    def check(self):
        following = self.following
        expected = self.image_of(self.committed)
        assert state(following.image) == state(expected)
        assert following.mirror.state() == mirror_of(expected).state()
        segments = sorted(name for name in self.disk.list_dir(LOG_DIR) if name.endswith(".log"))
        held = b"".join(self.disk.read_bytes(f"{LOG_DIR}/{name}") for name in segments)
        whole = b"".join(batch for batch in self.committed if batch_end(batch) > int(segments[0].removesuffix(".log")))
        assert held == whole
        assert not [name for name in self.disk.list_dir(LOG_DIR) if name.endswith(".part")]

    # ------------------------------------------------------------------------------------------------- what may happen

    def append(self):
        loader = self.load(self.log_of_leader())
        for _ in range(self.rng.randint(1, 4)):
            self.changes += 1
            change = self.rng.choice(KINDS), self.rng.randrange(3), self.rng.randrange(3)
            found = records(self.image, *change, self.changes)
            if not found:
                continue
            batches = [found]
            if self.rng.random() < 0.2:
                batches = [[BeginTransactionRecord(name="t")], found, [EndTransactionRecord()]]
            assert not loader.is_in_transaction
            self.leader.append(*batches, commits=False)
            self.image.replay(found)
        self.commit()

    def commit(self, *, all_of_it=False):
        ends = [0, *map(batch_end, self.log_of_leader())]
        known = max(self.leader.high_watermark, len(self.committed) and batch_end(self.committed[-1]))
        above = [end for end in ends if end > known]
        if above and (all_of_it or self.rng.random() < 0.7):
            self.leader.high_watermark = above[-1] if all_of_it else self.rng.choice(above)
        elif all_of_it:
            self.leader.high_watermark = max(known, ends[-1])
        log = self.log_of_leader()
        self.committed = [batch for batch in log if batch_end(batch) <= max(known, self.leader.high_watermark)]

    def elect(self):
        """The next leader has what was committed, and as much as it happens to have of the rest."""
        before = self.leader
        rest = self.log_of_leader()[len(self.committed) :]
        kept = rest[: self.rng.randint(0, len(rest))]
        others = [node_id for node_id in self.quorum.controllers if node_id != before.node_id]
        if self.rng.random() < 0.5:
            self.quorum.kill(before.node_id)
        chosen = self.rng.choice(others)
        self.leader = self.quorum.elect(chosen, before.epoch + self.rng.randint(1, 3), told=others)
        for each in self.quorum.controllers.values():
            each.net.refuses = each.net.refuses and each is before
            each.instead, each.instead_of_chunks = [], []
        leader = self.leader
        leader.start, leader.snapshots = before.start, dict(before.snapshots)
        leader.batches = [batch for batch in (*self.committed, *kept) if batch_end(batch) > leader.start.end_offset]
        # The high watermark is known to a new leader when a record of its own is committed.
        leader.high_watermark = -1
        leader.append_control(commits=False)
        if self.load(self.log_of_leader(kept)).is_in_transaction:
            leader.append([AbortTransactionRecord(reason="elected")], commits=False)

    def snapshot(self):
        """The leader's log, which is all committed, is replaced by a snapshot."""
        self.commit(all_of_it=True)
        if not self.committed or self.load(self.committed).is_in_transaction:
            return
        end = self.leader.end
        if end != self.leader.start:
            content = list(records_of(self.image_of(self.committed)))
            self.leader.begin_at(SnapshotId(*end), content)

    def disturb(self):
        """Answers are lost, or connections."""
        if self.rng.random() < 0.5:
            self.leader.instead = [None]
            self.leader.instead_of_chunks = [None]
        else:
            for link in self.leader.net.links:
                link.lose()

    def endanger(self):
        """The process will be killed at an operation of its disk."""
        self.disk.operations_left = self.rng.randint(0, 30)

    def spare(self):
        """It has been, or will not be."""
        self.disk.operations_left = None

    def wait(self):
        """Nothing happens."""

    # ------------------------------------------------------------------------------------------------ what follows of it

    def log_of_leader(self, uncommitted=None):
        """All batches that the leader's log has had, those in front of its snapshot too."""
        mine = self.leader.batches if uncommitted is None else None
        if mine is None:
            return [*self.committed, *uncommitted]
        front = [batch for batch in self.committed if batch_end(batch) <= self.leader.start.end_offset]
        return [*front, *mine]

    def load(self, batches):
        self.image = MetadataImage()
        loader = MetadataLoader(self.image)
        for batch in batches:
            if read_header(batch).is_control:
                continue
            decoded = [decode(record.value) for record in read_records(batch)]
            loader.replay(MetadataBatch(0, decoded), str)
        return loader

    def image_of(self, batches):
        self.load(batches)
        return self.image

    async def go_on(self):
        """Let the observer, started if it has been killed, do for a while what it does."""
        for _ in range(self.rng.randint(1, 6)):
            if self.following is None:
                self.start()
            with suppress(Killed):
                await settle()
                if self.following.task.done():
                    await self.following.task
                self.following.clock.advance(self.rng.choice([10, 100, 1000]))
            if self.following.task.done():
                await self.stop()
                self.spare()
        if self.following is None:
            self.start()

    def start(self):
        try:
            self.following = Following(
                self.quorum,
                self.disk,
                VirtualClock(),
                settings=SNAPSHOTS,
                segment_bytes=400,
                fetch_snapshot_max_bytes=100,
                fetch_max_bytes=150,
            )
        except Killed:
            self.spare()
            self.start()
            return
        self.following.mirror = Mirror()
        self.following.publishers.add(self.following.mirror, PublishingOrder.PARTITIONS)
        self.following.task = asyncio.get_running_loop().create_task(self.following.observer.run())

    async def stop(self):
        following, self.following = self.following, None
        if following is not None:
            following.task.cancel()
            with suppress(asyncio.CancelledError, Killed):
                await following.task
            await settle()


class PoweredHistory(History):
    """One in which the observer's machine loses its power."""

    def __init__(self, seed):
        super().__init__(seed)
        self.disk = MemoryDisk()
        self.has_power = True

    def endanger(self):
        self.has_power = False

    def spare(self):
        pass

    async def go_on(self):
        if not self.has_power:
            await self.stop()
            self.disk = self.disk.after_power_loss(self.rng if self.rng.random() < 0.7 else None)
            self.has_power = True
        await super().go_on()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", [History, PoweredHistory])
async def test_what_was_committed_is_what_the_observer_has(seed, kind):
    await kind(seed).run()
