"""``task_moves`` and ``tasks_now``: the records of each streams group through its story.

The state is a row for each group: a group without tasks has one, too.
"""

from collections.abc import Iterable, Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from odradek.pipeline.schema import INT, LONG, STREAMS_GROUP_PREFIX, STRING, struct
from odradek.pipeline.tables.files import Writer, by_key
from odradek.pipeline.tables.schema import RECORD_ORDER, TASK_MOVES, TASKS_NOW
from odradek.pipeline.tables.stories import Json, Record, Row, record_columns, told
from odradek.pipeline.tables.streams_story import StreamsGroupStory

STATE = struct(group=STRING, record_partition=INT, record_offset=LONG, _story=STRING)
_OUTPUT = struct(task_moves=TASK_MOVES, tasks_now=TASKS_NOW, streams_groups=STATE)
_KEY = ("group", "subtopology", "partition")


def build_tasks(raw: DataFrame, before: DataFrame, writer: Writer) -> None:
    """Write both tables, and the state behind them, out of new ``RAW`` rows and the ``STATE`` before them."""
    new = record_columns(raw.where(f.col("kind").startswith(STREAMS_GROUP_PREFIX)))
    with told(new.unionByName(before, allowMissingColumns=True), ("group",), _OUTPUT, _rows) as rows:
        moves, now, states = (rows.rows(name) for name in _OUTPUT.names)
        writer.table("task_moves", by_key(moves, *_KEY), *_KEY, *RECORD_ORDER)
        writer.state("tasks_now", by_key(now, *_KEY), *_KEY)
        writer.state("streams_groups", by_key(states, "group"), "group")


def _rows(records: Iterable[Json]) -> Iterator[Row]:
    """Yield the rows from the records of a group. The first record may be the group's state."""
    story = None
    for each in records:
        if each["_story"] is not None:
            story = StreamsGroupStory.resumed(each["group"], each["_story"])
            continue
        story = story or StreamsGroupStory(each["group"])
        yield from story.take(Record.of(each))
    state = None if story is None else story.state()
    if story is not None and state is not None:
        yield from story.now()
        yield Row("streams_groups", state)
