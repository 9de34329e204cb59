"""Findings about streams groups: tasks that move back and forth between processes."""

import json

import pytest

from odradek.pipeline.findings.finding import FINDING, Thresholds
from odradek.pipeline.findings.streams import moving_tasks
from tests.pipeline.table_rows import at, reader, task_move


def to_and_fro(group, times, every_s, **columns):
    return [task_move(group, every_s * n, *(("p", "q") if n % 2 else ("q", "p")), **columns) for n in range(1, times + 1)]


MOVES = [
    *to_and_fro("moving", 4, 100),
    *to_and_fro("moving", 4, 100, partition=2, is_stateful=False),
    *to_and_fro("of an unknown topology", 4, 100, is_stateful=None),
    *to_and_fro("with standbys", 5, 100, had_standby=True),
    *to_and_fro("without state", 4, 100, is_stateful=False),
    *to_and_fro("twice", 3, 100),
    *to_and_fro("seldom", 6, 1000),
    # From process to process, without a return, and from thread to thread.
    *(task_move("wandering", 10 * n, f"p{n}", f"p{n + 1}") for n in range(9)),
    *(task_move("at home", 10 * n, "p", "p") for n in range(9)),
]


@pytest.fixture(scope="module")
def found(spark_session):
    rows = moving_tasks(reader(spark_session, {"task_moves": MOVES}), Thresholds()).collect()
    assert len({row["id"] for row in rows}) == len({row["subject"] for row in rows}) == len(rows)
    assert [row for row in rows for column in FINDING.names if row[column] is None] == []
    return {row["subject"]: row.asDict() | {"evidence": json.loads(row["evidence"])} for row in rows}


def test_tasks_that_return_again_and_again_are_found(found):
    assert {group: (row["severity"], row["evidence"]["returns"]) for group, row in found.items()} == {
        "moving": ("high", 3),
        "of an unknown topology": ("high", 3),
        "with standbys": ("medium", 4),
        "without state": ("medium", 3),
    }
    row = found["moving"]
    assert row["kind"] == "moving_task"
    assert (row["from_time"], row["to_time"]) == (at(200).replace(tzinfo=None), at(400).replace(tzinfo=None))
    tasks = {"tasks": 2, "names": ["0_1", "0_2"], "returns": 3, "processes": ["p", "q"]}
    assert row["evidence"] == tasks | {"to_restore": 3, "away_ms_max": 7}
