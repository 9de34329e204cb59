"""``odradek load`` against a broker."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.cli.load import quantile


def test_it_stops_at_the_count_and_measures_both_ways(ask_json, topic):
    produced, consumed = ask_json("load", topic, "--count", 250, "--batch", 100, "--consumers", 2, "--keys")
    assert (produced["measured"], produced["requests"], produced["records"]) == ("produce", 3, 250)
    assert (consumed["measured"], consumed["requests"], consumed["records"]) == ("end to end", None, 250)
    for row in (produced, consumed):
        assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"] <= row["p999_ms"] <= row["max_ms"]
    ends = [row["log_end_offset"] for row in ask_json("topics", "describe", topic)[0]["partitions"]]
    assert (sum(ends), all(ends)) == (250, True)


def test_it_stops_at_the_time_and_keeps_the_rate(ask_json, topic):
    [row] = ask_json("load", topic, "--duration", 1, "--rate", 200, "--batch", 10, "--producers", 2)
    assert 150 <= row["records"] <= 200


def test_no_broker_is_one_line(command):
    status, out, err = command("load", "t", "--bootstrap-server", "127.0.0.1:1")
    assert (status, out, err.count("\n")) == (2, "", 1)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.001, 1))
def test_a_quantile_is_the_nearest_rank(values, share):
    found = quantile(sorted(values), share)
    assert sum(value <= found for value in values) >= share * len(values)
    assert sum(value < found for value in values) < share * len(values)
