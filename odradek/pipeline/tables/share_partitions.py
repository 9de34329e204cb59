"""``share_deliveries``, ``share_progress`` and ``share_partitions_now``: the records of each share partition through its story.

All records of a share partition are in one partition of ``__share_group_state``. The records of one group in one partition of the
log are read together, with a story for each share partition among them.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructField, StructType

from odradek.pipeline.schema import SHARE_SNAPSHOT, SHARE_UPDATE
from odradek.pipeline.tables.files import Writer, by_key
from odradek.pipeline.tables.schema import SHARE_DELIVERIES, SHARE_PARTITIONS_NOW, SHARE_PROGRESS
from odradek.pipeline.tables.share_story import SharePartitionStory
from odradek.pipeline.tables.stories import Json, Record, Row, record_columns, told

STATE = StructType([*SHARE_PARTITIONS_NOW.fields, StructField("_story", StringType())])
_NOW = "share_partitions_now"
_TOLD = {"share_deliveries": SHARE_DELIVERIES, "share_progress": SHARE_PROGRESS, _NOW: STATE}
_OUTPUT = StructType([StructField(name, schema) for name, schema in _TOLD.items()])
_KEY = ("group", "topic", "partition")
_RECORD_ORDER = ("record_partition", "record_offset")


def build_share_partitions(raw: DataFrame, before: DataFrame, names: Mapping[str, str], writer: Writer) -> None:
    """Write all three tables out of new ``RAW`` rows and the ``STATE`` before them. ``names`` are topics by id."""
    new = record_columns(raw.where(f.col("kind").isin(SHARE_SNAPSHOT, SHARE_UPDATE)))
    states = before.select("group", *_RECORD_ORDER, "_story")
    records = new.unionByName(states, allowMissingColumns=True)
    with told(records, ("group", "record_partition"), _OUTPUT, partial(_rows, dict(names))) as rows:
        deliveries, progress, now = (by_key(rows.rows(name), *_KEY) for name in _TOLD)
        writer.table("share_deliveries", deliveries, *_KEY, *_RECORD_ORDER, "first_offset")
        writer.table("share_progress", progress, *_KEY, *_RECORD_ORDER)
        writer.state(_NOW, now, *_KEY)


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
