"""Acknowledging, releasing and losing records: the window, and the writes to the share coordinator."""

from odradek.broker.share.acquisition import RECORD_LIMIT
from odradek.broker.share.in_flight import RecordState, ShareLimits
from odradek.broker.share.share_partition import SharePartitionState
from odradek.coordinator.share.state import PartitionState, StateBatch
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.share.bed import ACCEPT, GAP, REJECT, RELEASE, RENEW, Bed, name_of


def test_the_start_offset_follows_records_that_are_done_with():
    bed = Bed((0, 9), (10, 19))
    bed.fetch(batch_size=10)
    assert bed.acknowledge((0, 3, ACCEPT), (5, 5, REJECT), (7, 9, GAP)) is None
    assert bed.states()[:4] == [4, "0-3 ACKNOWLEDGED 1", "4-4 ACQUIRED 1 m", "5-5 ARCHIVED 1"]
    assert bed.window.delivery_complete_count == 4
    assert bed.persister.writes == [(0, 8, [(0, 3, 2, 1), (5, 5, 4, 1), (7, 9, 4, 1)])]
    assert bed.acknowledge((4, 4, ACCEPT), (6, 6, ACCEPT)) is None
    assert bed.states() == [10, "10-19 ACQUIRED 1 m"]
    assert bed.acknowledge((10, 19, ACCEPT)) is None
    assert (bed.states(), bed.window.next_fetch_offset(), bed.window.delivery_complete_count) == ([20], 20, 0)


def test_a_type_for_each_offset():
    bed = Bed((0, 5))
    bed.fetch()
    assert bed.acknowledge((0, 5, ACCEPT, ACCEPT, RELEASE, REJECT, GAP, ACCEPT)) is None
    assert bed.states() == [
        2,
        "0-1 ACKNOWLEDGED 1",
        "2-2 AVAILABLE 1",
        "3-4 ARCHIVED 1",
        "5-5 ACKNOWLEDGED 1",
    ]


def test_an_acknowledgement_with_an_error_changes_nothing():
    bed = Bed((0, 9), (10, 19))
    bed.fetch("a", most=10)
    bed.fetch("b", most=10)
    before = [repr(run) for run in bed.window.runs()]
    for ranges, error in (
        ([(0, 9, ACCEPT), (10, 19, ACCEPT)], "INVALID_RECORD_STATE"),
        ([(0, 4, ACCEPT), (4, 5, ACCEPT)], "INVALID_RECORD_STATE"),
        ([(0, 9, ACCEPT), (20, 29, ACCEPT)], "INVALID_REQUEST"),
        ([(0, 25, ACCEPT)], "INVALID_REQUEST"),
    ):
        assert bed.acknowledge(*ranges, member="a") == error
        assert {run.state for run in bed.window.runs()} == {RecordState.ACQUIRED}
        assert bed.window.delivery_complete_count == 0
    assert before[-1] == repr(list(bed.window.runs())[-1])
    assert bed.persister.writes == []
    assert bed.acknowledge((0, 9, ACCEPT), member="a") is None
    # Records before the start offset are done with, whoever acknowledges them.
    assert bed.acknowledge((0, 9, ACCEPT), member="b") is None
    assert bed.acknowledge((0, 12, ACCEPT), member="b") is None


def test_nothing_is_acquired_or_acknowledged_while_its_change_is_written_and_a_failure_undoes_it():
    bed = Bed((0, 9))
    bed.fetch()
    bed.persister.holds = True
    assert bed.acknowledge((0, 4, RELEASE)) == "waits"
    assert bed.fetch() == []
    assert bed.acknowledge((3, 6, ACCEPT)) == "INVALID_RECORD_STATE"
    assert bed.acknowledge((5, 9, ACCEPT)) == "waits"
    first, second = bed.persister.held
    woken = bed.woken
    first.complete(KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    second.complete(None)
    assert bed.woken > woken
    assert bed.states() == [0, "0-4 ACQUIRED 1 m", "5-9 ACKNOWLEDGED 1"]
    bed.persister.holds = False
    assert bed.acknowledge((0, 4, ACCEPT)) is None
    assert bed.states() == [10]


def test_the_persisters_errors_are_told_in_other_words():
    bed = Bed((0, 9))
    bed.fetch()
    for code, told in (
        (ErrorCode.NOT_COORDINATOR, "COORDINATOR_NOT_AVAILABLE"),
        (ErrorCode.FENCED_STATE_EPOCH, "NOT_LEADER_OR_FOLLOWER"),
        (ErrorCode.GROUP_ID_NOT_FOUND, "GROUP_ID_NOT_FOUND"),
        (ErrorCode.INVALID_REQUEST, "UNKNOWN_SERVER_ERROR"),
    ):
        bed.persister.error = KafkaError(code)
        assert bed.acknowledge((0, 9, ACCEPT)) == told
        assert bed.states() == [0, "0-9 ACQUIRED 1 m"]


def test_a_lock_expires_and_the_last_one_archives_the_record():
    bed = Bed((0, 9), limits=ShareLimits(delivery_count_limit=2, record_lock_duration_ms=1_000))
    bed.fetch("a")
    bed.acknowledge((3, 3, ACCEPT), member="a")
    bed.clock.advance(999)
    assert bed.fetch("b") == []
    bed.clock.advance(1)
    assert bed.fetch("b") == [(0, 2, 2), (4, 9, 2)]
    assert bed.acknowledge((0, 0, ACCEPT), member="a") == "INVALID_RECORD_STATE"
    bed.clock.advance(1_000)
    assert bed.states() == [10]
    assert bed.persister.writes[-1] == (0, 10, [(0, 2, 4, 2), (4, 9, 4, 2)])
    assert len(bed.timer) == 0


def test_each_lock_has_its_own_deadline_and_may_be_renewed():
    bed = Bed((0, 9), (10, 19), (20, 29), limits=ShareLimits(record_lock_duration_ms=1_000))
    for member in "abc":
        bed.fetch(member, most=10)
        bed.clock.advance(100)
    bed.clock.advance(600)
    assert bed.acknowledge((10, 14, RENEW), member="b") is None
    bed.clock.advance(100)
    assert bed.states()[1:] == ["0-9 AVAILABLE 1", "10-19 ACQUIRED 1 b", "20-29 ACQUIRED 1 c"]
    bed.clock.advance(200)
    assert bed.states()[1:] == ["0-9 AVAILABLE 1", "10-14 ACQUIRED 1 b", "15-19 AVAILABLE 1", "20-29 AVAILABLE 1"]
    bed.clock.advance(700)
    assert "10-19 AVAILABLE 1" in bed.states()
    bed.limits = bed.limits._replace(may_renew=False)
    bed.fetch("d")
    assert bed.acknowledge((0, 9, RENEW), member="d") == "INVALID_RECORD_STATE"


def test_a_lock_that_expires_while_its_acknowledgement_fails_releases_the_record():
    bed = Bed((0, 9), limits=ShareLimits(record_lock_duration_ms=1_000))
    bed.fetch()
    bed.persister.holds = True
    bed.acknowledge((0, 4, ACCEPT))
    bed.clock.advance(1_000)
    assert bed.states() == [0, "0-4 ACKNOWLEDGED 1", "5-9 AVAILABLE 1"]
    bed.persister.held[0].complete(KafkaError(ErrorCode.NETWORK_EXCEPTION))
    assert bed.states() == [0, "0-9 AVAILABLE 1"]
    assert bed.window.delivery_complete_count == 0
    assert bed.fetch() == [(0, 9, 2)]


def test_a_failed_acknowledgement_gives_no_records_back_that_the_log_has_lost_meanwhile():
    bed = Bed((0, 9), limits=ShareLimits(record_lock_duration_ms=1_000))
    bed.fetch()
    bed.persister.holds = True
    bed.acknowledge((0, 4, ACCEPT))
    bed.window.log_starts_at(3)
    bed.clock.advance(1_000)
    bed.persister.held[0].complete(KafkaError(ErrorCode.NETWORK_EXCEPTION))
    assert bed.states() == [3, "0-2 ARCHIVED 1", "3-9 AVAILABLE 1"]
    assert bed.fetch() == [(3, 9, 2)]


def test_a_refused_acknowledgement_whose_locks_expire_meanwhile_leaves_no_full_window():
    limits = ShareLimits(record_lock_duration_ms=1_000, delivery_count_limit=1, partition_max_record_locks=1_000)
    bed = Bed((0, 999), (1_000, 1_009), limits=limits)
    bed.fetch()
    steps = bed.acknowledging((0, 999, *[ACCEPT, RELEASE] * 500))
    assert next(steps) is None
    bed.clock.advance(1_000)
    assert name_of(list(steps)[-1]) == "INVALID_RECORD_STATE"
    while bed.turns:
        bed.turns.pop(0)()
    assert bed.states() == [1_000]
    assert bed.fetch() == [(1_000, 1_009, 1)]


def test_a_member_that_leaves_releases_its_records_only():
    bed = Bed((0, 9), (10, 19), limits=ShareLimits(delivery_count_limit=1))
    bed.fetch("a", most=10)
    bed.fetch("b", most=10)
    assert bed.release("a") == [None]
    assert bed.states() == [10, "10-19 ACQUIRED 1 b"]
    assert bed.release("a") == []
    assert len(bed.persister.writes) == 1


def test_the_window_follows_the_log():
    bed = Bed((0, 9), (10, 19))
    bed.fetch("a", most=10)
    bed.fetch("b", most=10)
    bed.acknowledge((0, 1, ACCEPT), (4, 6, ACCEPT), (8, 8, RELEASE), member="a")
    assert bed.window.delivery_complete_count == 3
    bed.window.log_starts_at(9)
    assert (bed.window.start_offset, bed.window.delivery_complete_count) == (9, 0)
    # The member may still acknowledge records that are gone; an expired lock archives them.
    assert bed.acknowledge((2, 3, ACCEPT), member="a") is None
    bed.window.log_starts_at(12)
    bed.clock.advance(bed.limits.record_lock_duration_ms)
    assert bed.states()[-2:] == ["10-11 ARCHIVED 1", "12-19 AVAILABLE 1"]
    bed.window.log_starts_at(40)
    assert bed.window.next_fetch_offset() == 40
    assert bed.fetch() == []


def test_a_window_below_the_log_start_is_forgotten():
    bed = Bed((0, 9))
    bed.fetch()
    bed.acknowledge((0, 4, RELEASE), (5, 9, ACCEPT))
    bed.window.log_starts_at(10)
    assert bed.states() == [10]


def test_a_lock_that_expires_below_the_log_start_takes_no_offset_back():
    bed = Bed((0, 9))
    bed.fetch()
    bed.window.log_starts_at(40)
    bed.clock.advance(bed.limits.record_lock_duration_ms)
    assert bed.states() == [40]
    assert bed.window.next_fetch_offset() == 40


def test_a_full_window_that_records_below_the_log_start_hold_back_wakes_nobody():
    bed = Bed((0, 9), (10, 14), limits=ShareLimits(partition_max_record_locks=10))
    bed.fetch()
    bed.acknowledge((0, 1, RELEASE))
    bed.window.log_starts_at(5)
    bed.fetch()
    bed.acknowledge((5, 6, ACCEPT))
    woken = bed.woken
    assert (bed.share.has_room, bed.woken) == (False, woken)
    bed.acknowledge((2, 4, RELEASE))
    bed.clock.advance(bed.limits.record_lock_duration_ms)
    assert bed.share.has_room


def test_dead_letters_are_archived_when_they_are_written_or_cannot_be():
    bed = Bed((0, 9), limits=ShareLimits(delivery_count_limit=1, has_dead_letters=True))
    bed.fetch()
    assert bed.acknowledge((0, 0, REJECT), (1, 1, RELEASE), (2, 2, ACCEPT)) is None
    assert bed.states()[1:4] == ["0-1 ARCHIVING 1", "2-2 ACKNOWLEDGED 1", "3-9 ACQUIRED 1 m"]
    bed.clock.advance(bed.limits.record_lock_duration_ms)
    assert [letter for letter, _ in bed.letters] == [(0, 0, 1, 0), (1, 1, 1, 1), (3, 9, 1, 1)]
    for _, reply in bed.letters[:2]:
        reply.complete(None)
    assert bed.states()[0] == 3
    bed.letters[2][1].complete(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    assert bed.states() == [10]
    assert bed.persister.writes[-1] == (3, 7, [(3, 9, 4, 1)])


def test_a_fetch_that_moves_a_full_window_wakes_the_others():
    bed = Bed((0, 4), (5, 9), limits=ShareLimits(partition_max_record_locks=5, has_dead_letters=True))
    bed.fetch()
    bed.acknowledge((0, 4, REJECT))
    assert bed.fetch() == []
    woken = bed.woken
    # The dead letters are archived. Before that is stored, a fetch finds room for more than it takes.
    bed.persister.holds = True
    bed.letters[0][1].complete(None)
    assert bed.fetch(most=1, mode=RECORD_LIMIT) == [(5, 5, 1)]
    assert bed.woken == woken + 1


def test_all_records_of_an_expired_lock_are_dead_letters_though_they_are_split_meanwhile():
    bed = Bed((0, 9), limits=ShareLimits(delivery_count_limit=1, has_dead_letters=True))
    bed.fetch()
    bed.acknowledge((9, 9, ACCEPT))
    bed.persister.holds = True
    bed.clock.advance(bed.limits.record_lock_duration_ms)
    assert bed.acknowledge((0, 4, ACCEPT)) == "INVALID_RECORD_STATE"
    bed.persister.holds = False
    bed.persister.held[0].complete(None)
    assert [letter for letter, _ in bed.letters] == [(0, 8, 1, 1)]
    bed.letters[0][1].complete(None)
    assert bed.states() == [10]


def test_a_leader_that_is_fenced_writes_no_dead_letters_of_expired_locks():
    for code, are_written in ((ErrorCode.FENCED_LEADER_EPOCH, False), (ErrorCode.NETWORK_EXCEPTION, True)):
        bed = Bed((0, 9), limits=ShareLimits(delivery_count_limit=1, has_dead_letters=True))
        bed.fetch()
        bed.persister.error = KafkaError(code)
        bed.clock.advance(30_000)
        assert bool(bed.letters) is are_written


def test_records_that_were_being_archived_are_dead_letters_again_after_a_load():
    stored = PartitionState(0, 0, 0, 0, (StateBatch(0, 0, 3, 1), StateBatch(1, 1, 3, 5)))
    bed = Bed((0, 9), limits=ShareLimits(has_dead_letters=True), state=stored)
    assert [letter for letter, _ in bed.letters] == [(0, 0, 1, 0), (1, 1, 5, 1)]


def test_a_state_that_contradicts_itself_is_not_used():
    bed = Bed((0, 9), state=PartitionState(0, 0, 5, 0, (StateBatch(0, 9, 2, 1),)))
    assert (bed.share.state, bed.share.error.code) == (SharePartitionState.FAILED, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert not bed.share.has_room
