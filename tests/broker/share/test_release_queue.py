"""Thousands of acquired records: they are released and acknowledged in slices; earlier locks are not looked at again."""

from odradek.broker.share.in_flight import RecordState, ShareLimits
from odradek.broker.share.release_queue import ReleaseQueue
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.slices import Slices
from tests.broker.share.bed import ACCEPT, RELEASE, RENEW, Bed, name_of

LIMITS = ShareLimits(record_lock_duration_ms=1_000, partition_max_record_locks=10_000)


def full_bed(records, at_once, **options):
    """A bed with records that were acquired one millisecond after the other, each in a batch of its own."""
    bed = Bed(limits=LIMITS, **options)
    for first in range(0, records, at_once):
        bed.log = [(offset, offset) for offset in range(first, first + at_once)]
        assert bed.fetch(most=at_once, batch_size=1)
        bed.clock.advance(1)
    return bed


def states_of(bed):
    return [run.state for run in bed.window.runs()]


def test_locks_expire_in_slices_and_records_stay_locked_until_their_slice():
    passed_ms = iter(range(10**6))
    bed = full_bed(2_000, 2_000, now_ms=lambda: next(passed_ms) * 3)
    bed.clock.advance(998)
    assert states_of(bed) == [RecordState.ACQUIRED] * 2_000
    bed.clock.advance(1)
    released = [states_of(bed).count(RecordState.AVAILABLE)]
    while bed.turns:
        bed.turns.pop(0)()
        released.append(states_of(bed).count(RecordState.AVAILABLE))
    assert released == [500, 1_000, 1_500, 2_000]
    # Neighbours are written as one batch, in a write a piece.
    assert bed.persister.writes[0][2] == [(0, 249, 0, 1)]
    assert len(bed.persister.writes) == 8
    assert bed.fetch(most=5, batch_size=1)[0] == (0, 0, 2)


def test_a_member_that_leaves_releases_in_slices_but_not_what_it_acquires_again_meanwhile():
    passed_ms = iter(range(10**6))
    bed = full_bed(2_000, 2_000, now_ms=lambda: next(passed_ms) * 3)
    ends = bed.release()
    assert (len(ends), states_of(bed).count(RecordState.AVAILABLE)) == (2, 500)
    # The member comes back. Its new records are its own, whether it held them before or not.
    bed.persister.error = KafkaError(ErrorCode.NETWORK_EXCEPTION)
    bed.acknowledge((600, 600, RENEW))
    bed.persister.error = None
    bed.log = [(offset, offset) for offset in range(2_000)]
    assert bed.fetch(most=2, batch_size=1) == [(0, 0, 2), (1, 1, 2)]
    while bed.turns:
        bed.turns.pop(0)()
    assert ends == [None] * 8
    held = [run.first_offset for run in bed.window.runs() if run.state == RecordState.ACQUIRED]
    assert held == [0, 1, 600]


def test_an_acknowledgement_pauses_and_is_undone_if_a_lock_expires_meanwhile():
    bed = Bed((0, 1_999), limits=LIMITS)
    bed.fetch(most=2_000)
    alternating = (0, 1_999, *[ACCEPT, RELEASE] * 1_000)
    work = bed.acknowledging(alternating)
    assert [next(work), next(work)] == [None, None]
    assert (len(states_of(bed)), bed.fetch("other")) == (501, [])
    bed.clock.advance(1_000)
    *_, reply = work
    assert name_of(reply) == "INVALID_RECORD_STATE"
    assert set(states_of(bed)) == {RecordState.AVAILABLE}
    assert (bed.accepted, bed.window.delivery_complete_count) == (0, 0)

    assert sum(last - first + 1 for first, last, _ in bed.fetch(most=2_000)) == 2_000
    bed.persister.writes.clear()
    bed.persister.holds = True
    work = bed.acknowledging(alternating)
    *pauses, reply = work
    assert pauses == [None] * 16
    for held in bed.persister.held[1:]:
        held.complete(None)
    assert name_of(reply) == "waits"
    # The piece that cannot be written is undone, and the member is told.
    bed.persister.held[0].complete(KafkaError(ErrorCode.NOT_COORDINATOR))
    assert name_of(reply) == "COORDINATOR_NOT_AVAILABLE"
    assert [len(batches) for _, _, batches in bed.persister.writes] == [250] * 8
    assert set(states_of(bed)[:250]) == {RecordState.ACQUIRED}
    assert states_of(bed)[250:] == [RecordState.ACKNOWLEDGED, RecordState.AVAILABLE] * 875


def test_each_work_runs_once_even_if_it_is_added_when_the_last_one_has_ended():
    passed_ms = iter(range(10**6))
    turns, done = [], []
    queue = ReleaseQueue(Slices(lambda: next(passed_ms) * 6, turns.append))

    def work(name):
        yield
        done.append(name)

    for name in range(20):
        queue.add(work(name))
        if turns:
            turns.pop(0)()
    while turns:
        turns.pop(0)()
    assert done == list(range(20))


def test_an_expiry_that_is_under_way_ends_with_its_share_partition():
    passed_ms = iter(range(10**6))
    bed = full_bed(1_000, 1_000, now_ms=lambda: next(passed_ms) * 6)
    bed.clock.advance(999)
    assert RecordState.ACQUIRED in states_of(bed)
    bed.share.fence()
    before = states_of(bed)
    while bed.turns:
        bed.turns.pop(0)()
    assert states_of(bed) == before


def test_locks_of_records_that_are_done_with_are_forgotten():
    bed = Bed(limits=LIMITS)
    for first in range(0, 5_000, 10):
        bed.log = [(first, first + 9)]
        bed.fetch()
        assert bed.acknowledge((first, first + 9, ACCEPT)) is None
        assert len(bed.window.locks) == 1
    assert len(bed.timer) == 1
    bed.clock.advance(1_000)
    assert (len(bed.timer), bed.window.locks) == (0, [])


def test_a_lock_survives_splits_renewals_and_acknowledgements_that_fail():
    bed = Bed((0, 9), limits=LIMITS)
    bed.fetch()
    bed.acknowledge((2, 2, RENEW), (4, 4, RELEASE))
    bed.clock.advance(500)
    bed.acknowledge((6, 6, RENEW))
    bed.persister.holds = True
    bed.acknowledge((7, 7, ACCEPT))
    bed.persister.holds = False
    bed.persister.held[0].complete(KafkaError(ErrorCode.NETWORK_EXCEPTION))
    bed.clock.advance(499)
    assert bed.states()[1:] == ["0-3 ACQUIRED 1 m", "4-4 AVAILABLE 1", "5-9 ACQUIRED 1 m"]
    bed.clock.advance(1)
    assert bed.states()[1:] == ["0-5 AVAILABLE 1", "6-6 ACQUIRED 1 m", "7-9 AVAILABLE 1"]
    bed.clock.advance(500)
    assert bed.states() == [0, "0-9 AVAILABLE 1"]
    assert len(bed.timer) == 0


def test_runs_that_are_alike_again_are_joined():
    bed = Bed((0, 99), limits=LIMITS)
    bed.fetch()
    for offset in [*range(2, 100, 2), *range(3, 100, 2)]:
        bed.acknowledge((offset, offset, RELEASE if offset < 50 else ACCEPT))
    assert [repr(run) for run in bed.window.runs()] == ["0-1 ACQUIRED 1 m", "2-49 AVAILABLE 1", "50-99 ACKNOWLEDGED 1"]
    bed.persister.holds = True
    bed.acknowledge((0, 0, RELEASE), (1, 1, RELEASE))
    bed.persister.held[0].complete(None)
    assert [repr(run) for run in bed.window.runs()] == ["0-49 AVAILABLE 1", "50-99 ACKNOWLEDGED 1"]
    assert bed.fetch() == [(0, 49, 2)]
