"""Rows that Python hands to Spark."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from odradek.pipeline.schema import local_rows

SCHEMA = "name string, number int, at timestamp, places array<struct<topic: string, partition: int>>"


def _plan(frame) -> str:
    return frame._jdf.queryExecution().optimizedPlan().toString()


def test_rows_are_what_they_were(spark):
    at = datetime(2026, 3, 1, 12, 0, 0, 123456, UTC)
    whole, empty = ("a", 1, at, [("t", 0), ("t", 1)]), (None, None, None, None)
    rows = local_rows(spark, SCHEMA, [whole, empty]).selectExpr("name", "number", "unix_micros(at)", "places").collect()
    assert [tuple(row) for row in rows] == [("a", 1, 1772366400123456, [("t", 0), ("t", 1)]), empty]


def test_what_depends_on_no_rows_is_left_out_of_the_plan(spark):
    none, numbers = local_rows(spark, SCHEMA), spark.range(5)
    assert none.collect() == []
    depends = numbers.join(none, numbers["id"] == none["number"]).groupBy("name").count()
    assert _plan(depends).startswith("LocalRelation <empty>")


def test_what_a_column_does_not_hold_is_refused(spark):
    with pytest.raises(pa.ArrowInvalid, match="tried to convert to int"):
        local_rows(spark, "number int", [("one",)])
