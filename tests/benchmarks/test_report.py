"""Ratios, targets and the table."""

import json

import pytest

from benchmarks.report import Figure, as_json, quantity, table
from benchmarks.scenarios import Target
from tests.cases import each_case

AT_LEAST_TWICE = Target(2.0, at_least=True)
AT_MOST_AS_MUCH = Target(1.0, at_least=False)
AT_MOST_48 = Target(48.0, at_least=False, of_ratio=False)


@each_case(
    ("target", "own", "kafka", "reached"),
    [
        (AT_LEAST_TWICE, 20.0, 10.0, True),
        (AT_LEAST_TWICE, 19.0, 10.0, False),
        (AT_MOST_AS_MUCH, 10.0, 10.0, True),
        (AT_MOST_AS_MUCH, 11.0, 10.0, False),
        (AT_MOST_48, 48.0, 372.0, True),
        (AT_MOST_48, 49.0, 372.0, False),
    ],
)
def test_a_target_bounds_the_ratio_or_the_figure_itself(target: Target, own: float, kafka: float, reached: bool):
    assert Figure("load", "measure", {"odradek": own, "kafka": kafka}, target).reached is reached


def test_without_kafka_a_ratio_is_not_told_and_its_target_neither_reached_nor_missed():
    figure = Figure("load", "measure", {"odradek": 20.0}, AT_LEAST_TWICE)

    assert figure.ratio is None
    assert figure.reached is None


def test_a_bound_on_odradeks_own_figure_needs_no_kafka():
    assert Figure("load", "measure", {"odradek": 40.0}, AT_MOST_48).reached is True


def test_a_broker_that_failed_leaves_the_target_open():
    assert Figure("load", "measure", {"kafka": 20.0}, AT_MOST_48).reached is None


@each_case(
    ("value", "shown"),
    [(2_914_000.0, "2.91 M"), (14_000.0, "14 k"), (0.7312, "0.731"), (None, "-"), (float("nan"), "-"), (0.0, "0")],
)
def test_quantities_are_shown_in_three_digits(value: float | None, shown: str):
    assert quantity(value) == shown


def test_a_bound_is_shown_in_three_digits():
    assert str(Target(1 / 3, at_least=False)) == "ratio <= 0.333"


def test_the_table_has_a_line_for_each_figure_and_names_each_load_once():
    figures = [
        Figure("produce", "records/s", {"odradek": 3e6, "kafka": 2e6}, Target(1.0, at_least=True)),
        Figure("produce", "server CPU", {"odradek": 0.3, "kafka": 0.2}, AT_MOST_AS_MUCH),
    ]

    header, _, first, second = table(figures, ["odradek", "kafka"]).splitlines()

    assert header.split() == ["odradek", "kafka", "ratio", "target", "reached"]
    assert first.split() == ["produce", "records/s", "3", "M", "2", "M", "1.50", "ratio", ">=", "1", "yes"]
    assert second.split() == ["server", "CPU", "0.3", "0.2", "1.50", "ratio", "<=", "1", "NO"]


def test_figures_can_be_written_as_json():
    (told,) = json.loads(json.dumps(as_json([Figure("start-up", "idle MiB", {"odradek": 40.0, "kafka": 400.0}, AT_MOST_48)])))

    assert told["ratio"] == pytest.approx(0.1)
    assert told["target"] == "<= 48"
    assert told["reached"] is True
