"""A coordinator's log that was compacted says what it said before, in far fewer bytes: shards on logs as a broker has them."""

from random import Random

import pytest

from odradek.coordinator.group.offset_commit import commit_offsets_in_transaction, end_transaction
from odradek.coordinator.runtime.result import EndTxnMarker
from odradek.coordinator.runtime.states import ShardState
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages
from tests.coordinator.group.bed import Answer
from tests.coordinator.group.offsets_bed import OffsetsBed
from tests.coordinator.stored_log import StoredLog
from tests.coordinator.transaction import bed as transaction_bed

IN_TRANSACTION = messages(ApiKey.TXN_OFFSET_COMMIT)
A, B = ("a", 0), ("b", 0)


class GroupBed(OffsetsBed):
    """A shard of groups; what it holds, as a load finds it, is ``held``."""

    def __init__(self):
        super().__init__()
        self.runtime.unload(0)
        self.logs.logs[0] = StoredLog()
        self.restart()

    def commit_in_transaction(self, producer, offsets, group_id):
        asked = [
            IN_TRANSACTION.TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="")
            for index, offset in offsets.items()
        ]
        request = IN_TRANSACTION.TxnOffsetCommitRequest(
            group_id=group_id,
            producer_id=producer,
            producer_epoch=0,
        )
        topics = [(None, asked, "t")]
        self.write(lambda shard: commit_offsets_in_transaction(shard.offsets, request, topics, 6), Answer().reply)

    def end_transaction(self, producer, commit):
        self.write(lambda _: end_transaction(EndTxnMarker(producer, 0, 3, commit)), Answer().reply)

    def held(self):
        offsets = self.shard.offsets
        groups = sorted({*offsets.by_group, *self.shard.groups.stored})
        return (
            {group: {topic: dict(found.items()) for topic, found in of.items()} for group, of in offsets.by_group.items()},
            dict(self.shard.groups.stored.items()),
            {group: sorted(offsets.pending.of_group(group)) for group in groups},
        )


def _some_group_traffic(bed, random, count):
    open_producers = set()
    for _ in range(count):
        group = f"group {random.randrange(6)}"
        offsets = {random.randrange(5): random.randrange(10**6) for _ in range(random.randrange(1, 4))}
        producer = random.randrange(100, 104)
        what = random.random()
        if what < 0.55:
            bed.commit(offsets, group_id=group)
        elif what < 0.75:
            bed.commit_in_transaction(producer, offsets, group)
            open_producers.add(producer)
        elif what < 0.9 and open_producers:
            bed.end_transaction(open_producers.pop(), random.random() < 0.6)
        elif what < 0.95:
            bed.delete(*offsets, group_id=group)
        elif what < 0.97:
            bed.delete_group(group)
        else:
            bed.advance(400)
    return open_producers


@pytest.mark.parametrize("seed", range(6))
def test_groups_offsets_and_those_pending_in_transactions_are_the_same_after_compaction(seed):
    random = Random(seed)
    bed = GroupBed()
    bed.stable("one", "two")
    for _ in range(4):
        open_producers = _some_group_traffic(bed, random, 120)
        bed.advance(20_000)
        bed.restart()
        held = bed.held()
        bed.log.compact(bed.clock.now_ms())
        bed.log.reopen()
        bed.restart()
        assert bed.runtime.states()[0] is ShardState.ACTIVE
        assert bed.held() == held
    for producer in open_producers:
        bed.end_transaction(producer, True)
    bed.restart()
    held = bed.held()
    size = bed.log.log.size_bytes
    for _ in range(3):
        bed.advance(2_000)
        bed.log.compact(bed.clock.now_ms())
    bed.log.reopen()
    bed.restart()
    assert bed.held() == held
    assert bed.log.log.size_bytes <= size
    assert not bed.faults


def test_offsets_that_were_committed_fifty_times_over_load_from_what_one_time_takes():
    bed = GroupBed()
    sizes = []
    for turn in range(50):
        for group in range(10):
            bed.commit(dict.fromkeys(range(50), turn), group_id=f"group {group}")
        sizes.append(bed.log.log.size_bytes)
    bed.restart()
    held = bed.held()
    bed.log.compact(bed.clock.now_ms())
    bed.restart()
    assert bed.held() == held
    assert bed.fetch(0, 49, group_id="group 9") == [49, 49]
    assert bed.log.log.size_bytes < 1.3 * sizes[0] < 0.03 * sizes[-1]


def test_a_group_that_was_deleted_stays_deleted_when_its_tombstones_are_gone():
    bed = GroupBed()
    bed.commit({0: 1, 1: 2}, group_id="gone")
    bed.commit({0: 1}, group_id="kept")
    bed.delete_group("gone")
    for _ in range(3):
        bed.advance(2_000)
        bed.log.compact(bed.clock.now_ms())
    bed.log.reopen()
    bed.restart()
    assert list(bed.held()[0]) == ["kept"]


class _TransactionBed(transaction_bed.Bed):
    def __init__(self):
        logs = transaction_bed.MemoryLogs()
        logs.logs[0] = StoredLog()
        super().__init__(logs)

    def reload(self):
        self.runtime.unload(0)
        self.logs.run()
        self.start()


def test_transactions_and_their_ends_are_the_same_after_compaction():
    random = Random(5)
    bed = _TransactionBed()
    producers = {}
    for _ in range(300):
        name = f"id {random.randrange(8)}"
        if name not in producers or random.random() < 0.1:
            found = bed.init(transactional_id=name)
            if isinstance(found, tuple):
                producers[name] = found
            continue
        bed.add(producers[name], random.choice([A, B]), transactional_id=name)
        if random.random() < 0.7:
            bed.end(producers[name], random.random() < 0.5, transactional_id=name)
        if random.random() < 0.05:
            bed.log.compact(bed.clock.now_ms())
    size = bed.log.log.size_bytes
    bed.reload()
    held = bed.persistent()
    assert len(held) == 8
    bed.log.compact(bed.clock.now_ms())
    bed.log.reopen()
    bed.reload()
    assert bed.persistent() == held
    assert bed.log.log.size_bytes < size / 2
    assert not bed.faults
