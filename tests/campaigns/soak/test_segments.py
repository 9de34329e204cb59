"""Rolls and compactions are counted as the data directory shows them."""

import pytest

from tests.campaigns.soak.segments import CHECKPOINT, Segments


@pytest.fixture
def data_dir(tmp_path):
    (tmp_path / "ledger-0").mkdir()
    return tmp_path


def put(data_dir, *offsets):
    for offset in offsets:
        (data_dir / "ledger-0" / f"{offset:020}.log").touch()


def test_a_segment_behind_the_first_is_a_roll_and_counts_once(data_dir):
    segments = Segments(data_dir)
    put(data_dir, 0)
    segments.look()
    assert segments.rolls.total() == 0
    put(data_dir, 7, 9)
    segments.look()
    segments.look()
    assert segments.rolls == {"ledger": 2}


def test_a_checkpoint_that_moves_is_a_compaction(data_dir):
    segments = Segments(data_dir)
    for offset in (0, 7, 7, 9):
        (data_dir / CHECKPOINT).write_text(f"0\n1\nledger 0 {offset}\n")
        segments.look()
    assert segments.compactions == {"ledger": 2}
