"""``max.connection.creation.rate`` over time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.network.connection_rate import ConnectionRate

NO_LIMIT = 2**31 - 1
WINDOW_MS = 10_000


def test_without_a_limit_nobody_waits():
    rate = ConnectionRate()
    assert [rate.delay_ms(0.0, NO_LIMIT) for _ in range(10_000)] == [0.0] * 10_000


def test_after_a_silence_ten_seconds_worth_of_connections_may_come_at_once():
    rate = ConnectionRate()
    delays = [rate.delay_ms(50_000.0, 5) for _ in range(52)]
    assert delays == [0.0] * 50 + [200.0, 400.0]


def test_a_rate_of_0_lets_one_through_in_a_second_as_in_kafka():
    rate = ConnectionRate()
    assert [rate.delay_ms(50_000.0, 0) for _ in range(3)] == [1000.0, 2000.0, 3000.0]


def test_a_rate_that_is_raised_counts_from_the_next_connection_on():
    rate = ConnectionRate()
    for _ in range(20):
        rate.delay_ms(50_000.0, 1)
    assert rate.delay_ms(60_000.0, 1) == pytest.approx(1000.0)
    assert rate.delay_ms(60_000.0, 100) == pytest.approx(1010.0)


@given(per_second=st.integers(1, 50), gaps_ms=st.lists(st.floats(0, 3000), max_size=200))
def test_no_more_connections_have_their_turn_within_any_time_than_the_rate_and_one_window_allow(per_second, gaps_ms):
    rate, now_ms, turns_ms = ConnectionRate(), 1_000_000.0, []
    for gap_ms in gaps_ms:
        now_ms += gap_ms
        turns_ms.append(now_ms + rate.delay_ms(now_ms, per_second))
    for first, begin_ms in enumerate(turns_ms):
        for last in range(first, len(turns_ms)):
            allowed = per_second * (turns_ms[last] - begin_ms + WINDOW_MS) / 1000 + 1
            assert last - first + 1 <= allowed + 1e-6
