"""``group_generations`` and ``groups_now``; and classic groups' records in order, the input of member changes and moves.

A classic group's record holds its whole state: generation and members. A record with the same generation as the one before is
no new generation: a static member returned under another member id. A record of generation 0 creates the group.

The records of a group with a thousand members are large, and mostly repeat the members of the record before. The window
functions therefore work on ``steps``: records without their members, with hashes of the member ids and of the assignments
instead. Consecutive steps with equal hashes are a run, numbered within the group. Members are read only at the start or the
end of a run.

The rows of ``consumer_groups`` are added to each table.
"""

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from odradek.pipeline.schema import CLASSIC, GROUP_METADATA
from odradek.pipeline.tables.consumer_groups import ConsumerGroups
from odradek.pipeline.tables.members import build_member_changes
from odradek.pipeline.tables.moves import build_moves
from odradek.pipeline.tables.offsets import Commits
from odradek.pipeline.tables.writing import Writer, by_key
from odradek.pipeline.tables_schema import GROUP_GENERATIONS, GROUPS_NOW

_KEY = "group"
_RECORD_ORDER = ("record_partition", "record_offset")
# A generation's first record: its time, and the end of the join phase, null if the record lacks it.
_GENERATION = StructType([StructField("at", TimestampType()), StructField("joined_at", TimestampType())])
# ``_era`` counts how often the group was empty or deleted. ``_generation`` is the present one.
STATE = StructType(
    [
        *GROUPS_NOW.fields,
        StructField("_era", LongType()),
        StructField("_member_run", LongType()),
        StructField("_assignment_run", LongType()),
        StructField("_generation", _GENERATION),
    ]
)
_ASSIGNMENT = """sort_array(flatten(transform(members, member -> coalesce(
    transform(member.assignment, each -> struct(
        member.member_id AS member_id, each.topic AS topic, sort_array(each.partitions) AS partitions)),
    array()))))"""
_IDS = "sort_array(transform(members, member -> member.member_id))"
# The names that identify members: a static member keeps its instance id under another member id.
_KNOWN_BY = "sort_array(transform(members, member -> coalesce(member.group_instance_id, member.member_id)))"


def build_groups(
    raw: DataFrame, before: DataFrame, owners: DataFrame, commits: Commits, consumer: ConsumerGroups, writer: Writer
) -> None:
    """Write all tables of groups.

    The input is new ``RAW`` rows, the ``STATE`` and the owners of partitions before them, and the rows of consumer groups.
    """
    records = _records(raw, before)
    members = records.select(_KEY, *_RECORD_ORDER, "members")
    steps = _steps(records).persist(StorageLevel.DISK_ONLY)
    try:
        generations = _generations(steps.where("_is_generation").join(members, [_KEY, *_RECORD_ORDER]))
        generations = generations.unionByName(consumer.rows("group_generations"))
        writer.table("group_generations", by_key(generations, _KEY), _KEY, "partition", "offset")
        now = steps.where("_is_newest AND _is_there").join(members, [_KEY, *_RECORD_ORDER])
        writer.state("groups_now", by_key(now.select(*STATE.names), _KEY), _KEY)
        build_member_changes(steps, members, commits, consumer, writer)
        build_moves(steps, members, owners, consumer, writer)
    finally:
        steps.unpersist()


def _records(raw: DataFrame, before: DataFrame) -> DataFrame:
    """Return old and new records, including tombstones."""
    new = raw.where(f.col("kind") == GROUP_METADATA).select(
        _KEY,
        "protocol_type",
        "generation",
        "protocol",
        "leader",
        "members",
        f.when(f.size("members") > 0, "Stable").when(f.col("members").isNotNull(), "Empty").alias("state"),
        f.lit(CLASSIC).alias("group_type"),
        f.col("timestamp").alias("at"),
        f.col("partition").alias("record_partition"),
        f.col("offset").alias("record_offset"),
        "state_timestamp_ms",
        f.lit(False).alias("_is_before"),
    )
    return new.unionByName(before.withColumn("_is_before", f.lit(True)), allowMissingColumns=True)


def _steps(records: DataFrame) -> DataFrame:
    """Return records without their members, each with columns of the record before it, partitioned by group."""
    is_there = f.col("members").isNotNull()
    rows = records.withColumns(
        {
            "_is_there": is_there,
            "_ends_era": f.coalesce(f.size("members") <= 0, f.lit(True)).cast("long"),
            "_ids": f.when(is_there, f.xxhash64(f.expr(_IDS))).otherwise(0),
            "_known_by": f.when(is_there, f.xxhash64(f.expr(_KNOWN_BY))).otherwise(0),
            "_assigned": f.when(is_there, f.xxhash64(f.expr(_ASSIGNMENT))).otherwise(0),
        }
    ).drop("members")
    rows = by_key(rows, _KEY)
    in_order = Window.partitionBy(_KEY).orderBy(*_RECORD_ORDER)
    until_now = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    rows = rows.withColumns(
        {
            "_previous_generation": f.lag("generation").over(in_order),
            "_previous_at": f.lag("at").over(in_order),
            "_previous_protocol": f.lag("protocol").over(in_order),
            "_has_same_members": f.col("_known_by").eqNullSafe(f.lag("_known_by").over(in_order)),
            "_begins_member_run": ~f.col("_ids").eqNullSafe(f.lag("_ids").over(in_order)),
            "_ends_member_run": ~f.col("_ids").eqNullSafe(f.lead("_ids").over(in_order)),
            "_begins_assignment_run": ~f.col("_assigned").eqNullSafe(f.lag("_assigned").over(in_order)),
            "_is_newest": f.lead("record_offset").over(in_order).isNull(),
        }
    )
    is_generation = (f.col("generation") > 0) & ~f.col("generation").eqNullSafe(f.col("_previous_generation"))
    rows = rows.withColumn("_is_generation", ~f.col("_is_before") & f.coalesce(is_generation, f.lit(False)))
    counted = {"_era": "_ends_era", "_member_run": "_begins_member_run", "_assignment_run": "_begins_assignment_run"}
    runs = {
        name: f.sum(f.when(f.col("_is_before"), f.col(name)).otherwise(f.col(step).cast("long"))).over(until_now)
        for name, step in counted.items()
    }
    rows = rows.withColumns(runs | {"_generation": f.last(_generation(), ignorenulls=True).over(until_now)})
    return rows.withColumn("_generation_before", f.lag("_generation").over(in_order))


def _generation() -> Column:
    """Return a generation's times, from its first record. A record that deletes the group resets them to null."""
    joined_at = f.when(f.col("state_timestamp_ms") >= 0, f.timestamp_millis("state_timestamp_ms"))
    known = f.struct("at", joined_at.alias("joined_at")).cast(_GENERATION)
    none = f.lit(None).cast("timestamp")
    unknown = f.struct(none.alias("at"), none.alias("joined_at")).cast(_GENERATION)
    return (
        f.when(f.col("_is_before"), f.col("_generation")).when(f.col("_is_generation"), known).when(~f.col("_is_there"), unknown)
    )


def _generations(begun: DataFrame) -> DataFrame:
    """Return ``GROUP_GENERATIONS``, out of the first record of each generation."""
    is_known = "size(members) = 0 OR exists(members, member -> member.assignment IS NOT NULL)"
    return begun.selectExpr(
        "group",
        "generation",
        "protocol_type",
        "protocol",
        "leader",
        f"{_IDS} AS members",
        "size(members) AS member_count",
        f"CASE WHEN {is_known} THEN {_ASSIGNMENT} END AS assignment",
        "state",
        "at",
        "unix_millis(at) - unix_millis(_generation_before.at) AS since_last_ms",
        "CASE WHEN state_timestamp_ms >= 0 AND size(members) > 0 THEN unix_millis(at) - state_timestamp_ms END AS sync_ms",
        "record_partition AS partition",
        "record_offset AS offset",
        """CASE WHEN _generation_before.at IS NULL THEN 'first'
            WHEN size(members) = 0 THEN 'empty'
            WHEN _has_same_members THEN 'assignment'
            ELSE 'members' END AS reason""",
        f"'{CLASSIC}' AS group_type",
        "CAST(NULL AS STRING) AS why",
    ).select(*GROUP_GENERATIONS.names)
