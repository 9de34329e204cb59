"""Rolls and compactions are counted as the data directory shows them, and a log that is not compacted any more is found."""

import pytest

from tests.campaigns.soak.books import Violation
from tests.campaigns.soak.patience import ServedClock
from tests.campaigns.soak.segments import CHECKPOINT, COORDINATORS, Segments

OFFSETS = COORDINATORS[0]


class Directory:
    """A data directory with one partition, of ``__consumer_offsets``."""

    def __init__(self, path):
        self.path = path
        self.now_s = 0.0
        self.segments = Segments(path, ServedClock(lambda: self.now_s))
        self._partition = path / f"{OFFSETS}-1"
        self._partition.mkdir()

    def put(self, *offsets, size=0):
        for offset in offsets:
            (self._partition / f"{offset:020}.log").write_bytes(bytes(size))
        self.segments.look()

    def cleaned_up_to(self, offset):
        (self.path / CHECKPOINT).write_text(f"0\n1\n{OFFSETS} 1 {offset}\n")
        self.segments.look()


@pytest.fixture
def directory(tmp_path):
    return Directory(tmp_path)


def test_a_segment_behind_the_first_is_a_roll_and_counts_once(directory):
    directory.put(0)
    assert directory.segments.rolls.total() == 0
    directory.put(7, 9)
    directory.segments.look()
    assert directory.segments.rolls == {OFFSETS: 2}


def test_a_checkpoint_that_moves_is_a_compaction(directory):
    for offset in (0, 7, 7, 9):
        directory.cleaned_up_to(offset)
    assert directory.segments.compactions == {OFFSETS: 2}


def test_a_log_is_due_from_the_first_roll_on_until_it_is_compacted(directory):
    directory.put(0, size=100)
    assert directory.segments.are_compacted()
    directory.put(7, size=100)
    assert not directory.segments.are_compacted()
    directory.cleaned_up_to(7)
    assert directory.segments.are_compacted()


def test_a_log_is_not_due_for_a_few_dirty_bytes(directory):
    directory.put(0, 7, size=100)
    directory.cleaned_up_to(7)
    directory.put(7, size=11)
    directory.put(9, size=100)
    assert directory.segments.are_compacted()
    directory.put(7, size=12)
    assert not directory.segments.are_compacted()


def test_a_log_that_remains_due_is_a_violation(directory):
    directory.put(0, 7, size=100)
    directory.now_s = 59.0
    directory.put(9, size=100)
    directory.segments.require_compacted(60)
    directory.now_s = 60.0
    with pytest.raises(Violation, match=f"{OFFSETS}-1 is not compacted any more: due for 60 s, from 0 on"):
        directory.segments.require_compacted(60)


def test_a_log_that_is_compacted_now_and_then_is_well(directory):
    directory.put(0, 7, size=100)
    directory.now_s = 59.0
    directory.cleaned_up_to(7)
    directory.put(9, size=100)
    directory.now_s = 118.0
    directory.segments.require_compacted(60)
    assert not directory.segments.are_compacted()


def test_logs_that_are_not_compacted_are_not_due(directory):
    ledger = directory.path / "ledger-0"
    ledger.mkdir()
    for offset in (0, 7):
        (ledger / f"{offset:020}.log").write_bytes(bytes(100))
    directory.segments.look()
    assert directory.segments.are_compacted()
