"""One history for all tests of the tables, told in parts by those that look at them: a pass of Spark's costs seconds.

Each part has groups, topics and transactional ids of its own. The tables are built when the first test asks for them, of all
parts, whichever tests were asked for.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from pyspark.sql import SparkSession

from odradek.pipeline.tables import read_table
from odradek.pipeline.tables.schema import TABLES
from tests.pipeline.raw_by_hand import History

_TELLERS = ("groups", "consumer_groups", "moves", "offsets", "shares", "streams", "transactions")
_PARTS: list[Callable[[History], None]] = []


def told(part: Callable[[History], None]) -> Callable[[History], None]:
    """Make this a part of the history."""
    _PARTS.append(part)
    return part


def whole_history() -> History:
    for name in _TELLERS:
        import_module(f"tests.pipeline.test_tables_{name}")
    history = History()
    for part in sorted(_PARTS, key=lambda part: (part.__module__, part.__name__)):
        part(history)
    return history


class Tables:
    """All tables of a warehouse, read once."""

    def __init__(self, spark: SparkSession, warehouse: str) -> None:
        self._rows = {name: read_table(spark, warehouse, name).collect() for name in TABLES}

    def rows(self, name: str, subject: str) -> list[dict[str, Any]]:
        """What a table says about a group or a transactional id, in the order of the log."""
        found = [row.asDict(recursive=True) for row in self._rows[name] if row[0] == subject]
        return sorted(found, key=lambda row: (row.get("record_offset", row.get("offset", 0)), repr(row)))

    def column(self, name: str, subject: str, *columns: str) -> list[Any]:
        """Some columns of it: values where it is one, tuples of them where they are several."""
        rows = [tuple(row[column] for column in columns) for row in self.rows(name, subject)]
        return [row[0] for row in rows] if len(columns) == 1 else rows

    def everything(self) -> dict[str, list[str]]:
        """All rows of all tables, to compare with those of another warehouse."""
        return {name: sorted(repr(row) for row in rows) for name, rows in self._rows.items()}
