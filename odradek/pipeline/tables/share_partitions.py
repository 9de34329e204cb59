"""``share_deliveries``, ``share_progress`` and ``share_partitions_now``: the records of each share partition through its story.

All records of a share partition are in one partition of ``__share_group_state``. The records of one group in one partition of the
log are read together, with a story for each share partition among them.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from odradek.pipeline.schema import SHARE_SNAPSHOT, SHARE_UPDATE, STRING, struct
from odradek.pipeline.tables.files import Writer, by_key
from odradek.pipeline.tables.offsets import KEY
from odradek.pipeline.tables.schema import RECORD_ORDER, SHARE_DELIVERIES, SHARE_PARTITIONS_NOW, SHARE_PROGRESS
from odradek.pipeline.tables.share_story import SharePartitionStory
from odradek.pipeline.tables.stories import Json, Record, Row, record_columns, told

STATE = struct(SHARE_PARTITIONS_NOW, _story=STRING)
_OUTPUT = struct(share_deliveries=SHARE_DELIVERIES, share_progress=SHARE_PROGRESS, share_partitions_now=STATE)


def build_share_partitions(raw: DataFrame, before: DataFrame, names: Mapping[str, str], writer: Writer) -> None:
    """Write all three tables out of new ``RAW`` rows and the ``STATE`` before them. ``names`` are topics by id."""
    new = record_columns(raw.where(f.col("kind").isin(SHARE_SNAPSHOT, SHARE_UPDATE)))
    states = before.select("group", *RECORD_ORDER, "_story")
    records = new.unionByName(states, allowMissingColumns=True)
    with told(records, ("group", "record_partition"), _OUTPUT, partial(_rows, dict(names))) as rows:
        deliveries, progress, now = (by_key(rows.rows(name), *KEY) for name in _OUTPUT.names)
        writer.table("share_deliveries", deliveries, *KEY, *RECORD_ORDER, "first_offset")
        writer.table("share_progress", progress, *KEY, *RECORD_ORDER)
        writer.state("share_partitions_now", now, *KEY)


def _rows(names: Mapping[str, str], records: Iterable[Json]) -> Iterator[Row]:
    """Yield the rows from the records of a group in one partition of the log, and from the states before them."""
    stories: dict[tuple[str, int], SharePartitionStory] = {}
    for each in records:
        if each["_story"] is not None:
            story = SharePartitionStory.resumed(each["group"], names, each["_story"])
            stories[story.place] = story
            continue
        record = Record.of(each)
        place = record.fields["topic_id"], record.fields["partition"]
        if place not in stories:
            stories[place] = SharePartitionStory(each["group"], place, names)
        yield from stories[place].take(record)
    for story in stories.values():
        state = story.state()
        if state is not None:
            now = story.now()
            yield Row(now.table, now.columns | {"_story": state})
