"""Thousands of acquisition locks: they expire in slices, and earlier ones are not looked at again."""

from odradek.broker.share.in_flight import RecordState, ShareLimits
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.share.bed import ACCEPT, RELEASE, RENEW, Bed

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
    assert released == [500, 1_000, 1_500, 2_000, 2_000]
    # Neighbours are written as one batch, in a write a piece.
    assert bed.persister.writes[0][2] == [(0, 249, 0, 1)]
    assert len(bed.persister.writes) == 8
    assert bed.fetch(most=5, batch_size=1)[0] == (0, 0, 2)


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
