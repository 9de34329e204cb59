"""Lines that clients cause are told a few times, and counted then."""

from odradek.common.logging import LineLimit
from odradek.timing.clock import VirtualClock


def test_ten_lines_of_a_cause_are_told_and_the_next_window_counts_the_others():
    clock = VirtualClock()
    limit = LineLimit(clock)
    assert [limit.admit("a") for _ in range(15)] == [{}] * 10 + [None] * 5
    assert limit.admit("b") == {}
    clock.advance(9_999)
    assert limit.admit("a") is None
    clock.advance(1)
    assert limit.admit("a") == {"left_out": 6}
    assert limit.admit("a") == {}


def test_a_hundred_lines_are_told_of_however_many_causes():
    limit = LineLimit(VirtualClock())
    assert sum(limit.admit(cause) is not None for cause in range(100_000)) == 100
    assert len(limit._suppressed) == 1_000
