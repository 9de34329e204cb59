"""``group_generations`` and ``groups_now``; and groups' records in order, which member changes and partition moves come from.

A classic group's record says all there is of it: generation and members. A record with the generation of the one before is not a
new generation: a static member came back under another member id. One of generation 0 says that the group was made.
"""

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, LongType, StructField, StructType, TimestampType

from odradek.pipeline.schema import GROUP_METADATA, MEMBER
from odradek.pipeline.tables.members import build_member_changes
from odradek.pipeline.tables.moves import build_moves
from odradek.pipeline.tables.offsets import Commits
from odradek.pipeline.tables.reading import read_state_at
from odradek.pipeline.tables.writing import Writer, by_key
from odradek.pipeline.tables_schema import GROUP_GENERATIONS, GROUPS_NOW

_KEY = "group"
_RECORD_ORDER = ("record_partition", "record_offset")
_GENERATION = StructType([StructField("at", TimestampType()), StructField("sequence", LongType())])
# ``_era`` counts how often the group was empty or deleted, ``_generation`` says when the present one began and which of the
# group's recorded ones it is.
STATE = StructType([*GROUPS_NOW.fields, StructField("_era", LongType()), StructField("_generation", _GENERATION)])


def build_groups(raw: DataFrame, before: DataFrame, owners: DataFrame, commits: Commits, writer: Writer) -> None:
    """Write all tables of groups out of new ``RAW`` rows, the ``STATE`` and the owners of partitions before them."""
    rows = _records(raw, before).persist(StorageLevel.DISK_ONLY)
    try:
        new = rows.where("NOT _is_before AND members IS NOT NULL")
        writer.table("group_generations", _generations(new), _KEY, "partition", "offset")
        now = rows.where("_is_newest AND members IS NOT NULL").select(*STATE.names)
        state = read_state_at(raw.sparkSession, writer.state("groups_now", now, _KEY), STATE)
        build_member_changes(new, commits, writer)
        build_moves(new, owners, state, writer)
    finally:
        rows.unpersist()


def _records(raw: DataFrame, before: DataFrame) -> DataFrame:
    """Old and new records, tombstones too, each with what it follows, spread by group."""
    new = raw.where(f.col("kind") == GROUP_METADATA).select(
        _KEY,
        "protocol_type",
        "generation",
        "protocol",
        "leader",
        "members",
        f.when(f.size("members") > 0, "Stable").when(f.col("members").isNotNull(), "Empty").alias("state"),
        f.col("timestamp").alias("at"),
        f.col("partition").alias("record_partition"),
        f.col("offset").alias("record_offset"),
        "state_timestamp_ms",
        f.lit(False).alias("_is_before"),
    )
    rows = by_key(new.unionByName(before.withColumn("_is_before", f.lit(True)), allowMissingColumns=True), _KEY)
    in_order = Window.partitionBy(_KEY).orderBy(*_RECORD_ORDER)
    until_now = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ends_era = (f.size(f.coalesce("members", f.array().cast(ArrayType(MEMBER)))) == 0).cast("long")
    rows = rows.withColumns(
        {
            "_previous_generation": f.lag("generation").over(in_order),
            "_previous_members": f.lag("members").over(in_order),
            "_previous_at": f.lag("at").over(in_order),
            "_era": f.sum(f.when(f.col("_is_before"), f.col("_era")).otherwise(ends_era)).over(until_now),
            "_is_newest": f.lead("record_offset").over(in_order).isNull(),
        }
    )
    is_generation = (f.col("generation") > 0) & ~f.col("generation").eqNullSafe(f.col("_previous_generation"))
    rows = rows.withColumn("_is_generation", ~f.col("_is_before") & f.coalesce(is_generation, f.lit(False)))
    sequence = f.when(f.col("_is_before"), f.col("_generation.sequence")).otherwise(f.col("_is_generation").cast("long"))
    rows = rows.withColumn("_sequence", f.sum(f.coalesce(sequence, f.lit(0))).over(until_now))
    rows = rows.withColumn("_generation", f.last(_generation(), ignorenulls=True).over(until_now))
    return rows.withColumn("_generation_before", f.lag("_generation").over(in_order))


def _generation() -> Column:
    """Of the record that a generation begins with; of one that deletes the group, nothing known."""
    known = f.struct("at", f.col("_sequence").alias("sequence")).cast(_GENERATION)
    unknown = f.struct(f.lit(None).cast("timestamp").alias("at"), f.col("_sequence").alias("sequence")).cast(_GENERATION)
    return (
        f.when(f.col("_is_before"), f.col("_generation"))
        .when(f.col("_is_generation"), known)
        .when(f.col("members").isNull(), unknown)
    )


def _generations(new: DataFrame) -> DataFrame:
    """``GROUP_GENERATIONS`` of the records that a generation begins with."""
    # What a member is known by: static members are the same under another member id.
    known_by = "transform({}, member -> coalesce(member.group_instance_id, member.member_id))"
    has_same_members = f"sort_array({known_by.format('members')}) = sort_array({known_by.format('_previous_members')})"
    assigned = """transform(members, member -> coalesce(
        transform(member.assignment, each -> struct(
            member.member_id AS member_id, each.topic AS topic, array_sort(each.partitions) AS partitions)),
        array()))"""
    is_known = "size(members) = 0 OR exists(members, member -> member.assignment IS NOT NULL)"
    return (
        new.where("_is_generation")
        .selectExpr(
            "group",
            "generation",
            "protocol_type",
            "protocol",
            "leader",
            "array_sort(transform(members, member -> member.member_id)) AS members",
            "size(members) AS member_count",
            f"CASE WHEN {is_known} THEN array_sort(flatten({assigned})) END AS assignment",
            "state",
            "at",
            "unix_millis(at) - unix_millis(_generation_before.at) AS since_last_ms",
            "CASE WHEN state_timestamp_ms >= 0 AND size(members) > 0 THEN unix_millis(at) - state_timestamp_ms END AS sync_ms",
            "record_partition AS partition",
            "record_offset AS offset",
            f"""CASE WHEN _generation_before.at IS NULL THEN 'first'
            WHEN size(members) = 0 THEN 'empty'
            WHEN {has_same_members} THEN 'assignment'
            ELSE 'members' END AS reason""",
        )
        .select(*GROUP_GENERATIONS.names)
    )
