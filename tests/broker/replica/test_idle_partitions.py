"""Partitions in which nothing happens cost a fetch nothing, and are replicated, told and in sync all the same."""

import pytest

from odradek.broker.replica.delayed_fetch import FetchRead
from odradek.broker.replica.follower_fetch import FollowerFetchRead
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.replica.many_partitions import EPOCH, FOLLOWERS, LeadingBroker, Reader
from tests.broker.replica.replication_bed import FIRST, LEADER, MAX_LAG_MS, SECOND
from tests.broker.replica.test_read_committed import NOW_MS, transactional_batch
from tests.cases import each_case

MANY = 300
WAIT_MS = 500


class Looks:
    """How often a partition was looked at for a fetch."""

    def __init__(self, monkeypatch):
        self.count = 0
        for kind in (FetchRead, FollowerFetchRead):
            for name in ("_read_partition", "_has_something"):
                monkeypatch.setattr(kind, name, self._counted(getattr(kind, name)))

    def _counted(self, look):
        def counted(*arguments):
            self.count += 1
            return look(*arguments)

        return counted

    def during(self, act):
        before = self.count
        act()
        return self.count - before


def settled(*readers):
    """The readers, when they know all that there is."""
    for _ in range(3):
        for reader in readers:
            reader.fetch()
    return readers


def exchange(broker, *readers):
    """A record, from its append to the high watermark's advance, with fetches that wait."""
    for reader in readers:
        reader.wait(WAIT_MS)
    broker.append(7)
    for reader in readers:
        assert set(reader.waiting) == {7}
    for reader in readers:
        reader.wait(WAIT_MS)
    assert broker.all[7].high_watermark == broker.all[7].log.log_end_offset


@pytest.mark.interpreted
def test_a_record_costs_its_own_partition_alone(monkeypatch):
    looks = Looks(monkeypatch)
    costs = []
    for count in (10, MANY):
        broker = LeadingBroker(count)
        first, second = settled(Reader(broker, FIRST), Reader(broker, SECOND))
        costs.append(looks.during(lambda: exchange(broker, first, second)))  # noqa: B023
    assert costs[0] == costs[1] < 40


@pytest.mark.interpreted
def test_a_fetch_that_waits_in_vain_looks_at_nothing(monkeypatch):
    looks = Looks(monkeypatch)
    broker = LeadingBroker(MANY)
    readers = settled(Reader(broker, FIRST), Reader(broker), Reader(broker, committed=True))

    def wait():
        for reader in readers:
            reader.wait(WAIT_MS)
        broker.clock.advance(WAIT_MS)
        assert [reader.waiting for reader in readers] == [{}, {}, {}]

    assert looks.during(wait) == 0


@pytest.mark.interpreted
def test_a_consumer_of_idle_partitions_pays_for_the_one_that_is_not(monkeypatch):
    looks = Looks(monkeypatch)
    costs = []
    for count in (10, MANY):
        broker = LeadingBroker(count)
        first, second, consumer = settled(Reader(broker, FIRST), Reader(broker, SECOND), Reader(broker))
        consumer.wait(WAIT_MS)
        costs.append(looks.during(lambda: exchange(broker, first, second)))  # noqa: B023
        assert set(consumer.waiting) == {7}
    assert costs[0] == costs[1]


def test_followers_that_fetch_nothing_stay_in_sync_however_long_a_partition_was_idle():
    broker = LeadingBroker(3)
    first, second = settled(Reader(broker, FIRST), Reader(broker, SECOND))
    for _ in range(4 * MAX_LAG_MS // WAIT_MS):
        broker.clock.advance(WAIT_MS)
        assert first.fetch() == second.fetch() == {}
    broker.append(1)
    broker.clock.advance(WAIT_MS)
    for partition in broker.all:
        partition.leader.followers.shrink(partition.log.log_end_offset)
    assert broker.proposals == []
    follower = broker.all[1].leader.followers.follower(FIRST)
    assert follower.last_caught_up_ms == broker.clock.monotonic_ms() - WAIT_MS
    first.fetch()
    assert follower.last_caught_up_ms == broker.clock.monotonic_ms() - WAIT_MS


def test_a_follower_that_fetches_no_more_has_caught_up_when_it_last_did():
    broker = LeadingBroker(3)
    first, second = settled(Reader(broker, FIRST), Reader(broker, SECOND))
    for _ in range(2 * MAX_LAG_MS // WAIT_MS):
        broker.clock.advance(WAIT_MS)
        first.fetch()
    broker.append(1)
    followers = broker.all[1].leader.followers
    followers.shrink(broker.all[1].log.log_end_offset)
    [proposal] = broker.proposals
    assert {node_id for node_id, _ in proposal.isr} == {LEADER, FIRST}
    assert second.fetch().keys() == {1}


def test_a_follower_that_asks_for_the_same_while_others_write_falls_behind():
    broker = LeadingBroker(2)
    first, second = settled(Reader(broker, FIRST), Reader(broker, SECOND))
    broker.append(0)
    second.fetch()
    began_ms = broker.clock.monotonic_ms()
    for _ in range(2 * MAX_LAG_MS // WAIT_MS):
        broker.clock.advance(WAIT_MS)
        second.fetch()
        # Its disk takes nothing: it asks for the old offset.
        first.named = {0}
        first.offsets[0] = 0
        first.fetch()
        first.offsets[0] = 0
    follower = broker.all[0].leader.followers.follower(FIRST)
    assert follower.last_caught_up_ms == began_ms
    broker.all[0].leader.followers.shrink(1)
    assert {node_id for node_id, _ in broker.proposals[0].isr} == {LEADER, SECOND}


def test_a_follower_that_is_refused_has_caught_up_before_that():
    broker = LeadingBroker(2)
    first, _ = settled(Reader(broker, FIRST), Reader(broker, SECOND))
    settled_ms = broker.clock.monotonic_ms()
    first.offsets[0] = 7
    for _ in range(3):
        broker.clock.advance(WAIT_MS)
        first.named.add(0)
        assert first.fetch()[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert [each.leader.followers.follower(FIRST).last_caught_up_ms for each in broker.all] == [
        settled_ms,
        broker.clock.monotonic_ms(),
    ]


def test_a_follower_that_could_not_be_in_sync_is_asked_for_again_though_it_asks_for_nothing():
    broker = LeadingBroker(2, isr=(LEADER, SECOND))
    del broker.epochs[FIRST]
    [first] = settled(Reader(broker, FIRST))
    assert broker.proposals == []
    broker.epochs[FIRST] = FOLLOWERS[FIRST]
    assert first.fetch() == {}
    assert [set(dict(proposal.isr)) for proposal in broker.proposals] == [{LEADER, FIRST, SECOND}] * 2


def test_one_that_leaves_the_isr_while_it_is_idle_comes_back_by_fetching():
    broker = LeadingBroker(2)
    [first] = settled(Reader(broker, FIRST), Reader(broker, SECOND))[:1]
    broker.all[0].leader.followers.committed((LEADER, FIRST, SECOND), (LEADER, SECOND), 5)
    assert first.fetch() == {}
    [proposal] = broker.proposals
    assert (proposal.partition, set(dict(proposal.isr))) == (0, {LEADER, FIRST, SECOND})


def test_a_high_watermark_that_waits_for_one_out_of_sync_moves_on_in_time():
    broker = LeadingBroker(1, isr=(LEADER, SECOND))
    _, second = settled(Reader(broker, FIRST), Reader(broker, SECOND))
    broker.append(0)
    broker.refuse(KafkaError(ErrorCode.INELIGIBLE_REPLICA, "not now"))
    for _ in range(3):
        second.fetch()
    # The first one may join, and has not got the record.
    assert broker.all[0].high_watermark == 0
    broker.clock.advance(MAX_LAG_MS + 1)
    second.fetch()
    assert broker.all[0].high_watermark == 1


def test_marks_that_move_are_told_to_all_who_fetch():
    broker = LeadingBroker(3)
    readers = settled(Reader(broker, FIRST), Reader(broker, SECOND), Reader(broker))
    for _ in range(4):
        broker.append(2)
    settled(*readers)
    broker.all[2].log.delete_records_before(3)
    assert [set(reader.fetch()) for reader in readers] == [{2}, {2}, {2}]
    assert [reader.start_offsets[2] for reader in readers] == [3, 3, 3]
    assert [reader.high_watermarks[2] for reader in readers] == [4, 4, 4]
    assert [reader.fetch() for reader in readers] == [{}, {}, {}]


def become_follower(broker):
    broker.all[1].become_follower(SECOND, EPOCH + 1)


def lead_on(broker):
    broker.lead(broker.all[1], EPOCH + 1, (LEADER, FIRST, SECOND))


def delete(broker):
    broker.partitions.remove(broker.all[1]).delete()


@each_case(
    ("happen", "error"),
    [
        (become_follower, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (lead_on, ErrorCode.FENCED_LEADER_EPOCH),
        (delete, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (lambda broker: broker.all[1].take_offline("its disk failed"), ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
@each_case("node_id", [FIRST, -1])
def test_an_error_of_an_idle_partition_is_told_at_once_and_in_each_fetch(happen, error, node_id):
    broker = LeadingBroker(3)
    [reader] = settled(Reader(broker, node_id))
    reader.wait(WAIT_MS)
    happen(broker)
    if node_id < 0 and error == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        # A consumer may read from a follower: it is fenced instead.
        error = ErrorCode.FENCED_LEADER_EPOCH
    assert {index: data.error_code for index, data in reader.waiting.items()} == {1: error}
    assert {index: data.error_code for index, data in reader.fetch().items()} == {1: error}


def test_a_follower_that_lost_its_replica_is_refused():
    broker = LeadingBroker(2)
    [first] = settled(Reader(broker, FIRST))
    broker.all[0].leader.followers.committed((LEADER, SECOND), (LEADER, SECOND), 5)
    assert {index: data.error_code for index, data in first.fetch().items()} == {0: ErrorCode.UNKNOWN_LEADER_EPOCH}


def test_a_broker_that_registers_anew_tells_its_epoch_for_all_partitions():
    broker = LeadingBroker(3)
    [first] = settled(Reader(broker, FIRST))
    first.broker_epoch = broker.epochs[FIRST] = 99
    assert first.fetch() == {}
    assert {partition.leader.followers.follower(FIRST).broker_epoch for partition in broker.all} == {99}


def test_a_session_that_reads_otherwise_than_before_looks_at_all():
    broker = LeadingBroker(3, isr=(LEADER,))
    reader = Reader(broker, committed=True)
    broker.all[1].append(transactional_batch(0), NOW_MS, True)
    settled(reader)
    reader.committed = False
    assert set(reader.fetch()) == {1}


def test_a_partition_for_which_there_was_no_room_is_not_idle():
    broker = LeadingBroker(3, isr=(LEADER,))
    [reader] = settled(Reader(broker))
    for index in (0, 0, 1, 2):
        broker.append(index)
    # One batch is given whatever its size, and then there is room for none.
    given = [[index for index, data in reader.fetch(max_bytes=1).items() if data.records] for _ in range(4)]
    assert given == [[0], [1], [2], [0]]


def test_a_consumer_that_goes_back_or_takes_another_partition_in_is_read_for():
    broker = LeadingBroker(3, isr=(LEADER,))
    reader = Reader(broker)
    reader.leave_out(2)
    for index in range(3):
        broker.append(index)
    settled(reader)
    assert reader.fetch() == {}
    reader.offsets[1] = 0
    reader.named.add(1)
    reader.take_in(2)
    assert {index for index, data in reader.fetch().items() if data.records} == {1, 2}


def test_a_session_that_ends_leaves_nothing_behind():
    broker = LeadingBroker(3)
    reader, other = settled(Reader(broker), Reader(broker))
    assert {len(partition.fetched_by) for partition in broker.all} == {2}
    # A full fetch that names its session ends it, and begins another.
    reader.left_out = {0, 2}
    reader.begin_anew()
    reader.fetch()
    assert [len(partition.fetched_by) for partition in broker.all] == [1, 2, 1]
    other.session_epoch = -1
    broker.handle(other.request())
    assert [len(partition.fetched_by) for partition in broker.all] == [0, 1, 0]


def test_a_fetch_without_a_session_is_watched_while_it_waits():
    broker = LeadingBroker(3, isr=(LEADER,), slots=0)
    reader = Reader(broker)
    reader.wait(WAIT_MS)
    assert [len(partition.fetched_by) for partition in broker.all] == [1, 1, 1]
    broker.append(2)
    assert set(reader.waiting) == {0, 1, 2}
    assert [len(partition.fetched_by) for partition in broker.all] == [0, 0, 0]


def test_a_fetch_that_waits_in_a_session_that_was_evicted_is_woken_all_the_same():
    broker = LeadingBroker(2, isr=(LEADER,), slots=1)
    [reader] = settled(Reader(broker))
    reader.wait(10 * WAIT_MS)
    broker.fetch_sessions._remove(reader.session_id)
    broker.append(1)
    assert set(reader.waiting) == {1}
    assert [len(partition.fetched_by) for partition in broker.all] == [0, 0]
