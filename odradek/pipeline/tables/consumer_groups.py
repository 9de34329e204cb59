"""Consumer and share groups (KIP-848, KIP-932) in Spark: each group's records pass through its ``GroupStory``, in order.

The state of a group is a row: the columns of ``groups_now``, and the story's own state.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, reduce
from operator import or_

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from odradek.pipeline.schema import ASSIGNMENT, GROUP_METADATA, INT, MODERN_GROUP_PREFIXES, STRING, TIME, struct
from odradek.pipeline.tables.consumer_story import GroupStory
from odradek.pipeline.tables.schema import GROUP_GENERATIONS, GROUPS_NOW, MEMBER_CHANGES, PARTITION_MOVES, RECORD_ORDER
from odradek.pipeline.tables.stories import Json, Record, Row, Told, record_columns, told

STATE = struct(GROUPS_NOW, _story=STRING)
# For the comparison with commits: the partitions of a member that is gone, and the time of its last record.
CHANGES = struct(MEMBER_CHANGES, assignment=ASSIGNMENT, session_timeout=INT, _since=TIME)
OUTPUT = struct(group_generations=GROUP_GENERATIONS, member_changes=CHANGES, partition_moves=PARTITION_MOVES, groups_now=STATE)


@contextmanager
def tell(raw: DataFrame, before: DataFrame, names: Mapping[str, str]) -> Iterator[Told]:
    """Yield the rows of new ``RAW`` records after the ``STATE``, persisted for the ``with``. ``names`` are topics by id."""
    is_theirs = reduce(or_, map(f.col("kind").startswith, MODERN_GROUP_PREFIXES))
    # A classic group that becomes a consumer group is deleted as a classic one.
    is_theirs |= (f.col("kind") == GROUP_METADATA) & f.col("is_tombstone")
    states = before.select("group", *RECORD_ORDER, "_story")
    records = record_columns(raw.where(is_theirs)).unionByName(states, allowMissingColumns=True)
    with told(records, ("group",), OUTPUT, partial(_rows, dict(names))) as rows:
        yield rows


def _rows(names: Mapping[str, str], records: Iterable[Json]) -> Iterator[Row]:
    """Yield the rows from the records of a group. The first record may be the group's state."""
    story = None
    for each in records:
        if each["_story"] is not None:
            story = GroupStory.resumed(each["group"], names, each["_story"])
            continue
        story = story or GroupStory(each["group"], names)
        yield from story.take(Record.of(each))
    state = None if story is None else story.state()
    if story is not None and state is not None:
        now = story.now()
        yield Row(now.table, now.columns | {"_story": state})
