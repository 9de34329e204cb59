"""``partition_moves``, and ``partition_owners``, the state behind them: the last owner of each partition.

A partition has an owner in each generation that assigns it. It has moved if the owner is another than the last owner; static
members are recognised by their instance id. The last owner may have had it some generations ago, with no owner in between:
cooperative assignors move partitions this way. An empty group has no owners, and the next owners take partitions from nobody.

Moves in consumer groups come from ``consumer_groups``.
"""

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from odradek.pipeline.schema import INT, LONG, STRING, struct
from odradek.pipeline.tables.consumer_story import CONVERTED
from odradek.pipeline.tables.files import Writer, by_key
from odradek.pipeline.tables.offsets import KEY
from odradek.pipeline.tables.schema import PARTITION_MOVES, RECORD_ORDER
from odradek.pipeline.tables.stories import Told

# ``known_by``: the instance id of a static member, the member id of a dynamic one. ``run``: the last run of records with equal
# assignments in which the partition had this owner.
_OWNER = struct(member_id=STRING, known_by=STRING, client_id=STRING, era=LONG, run=LONG)
_IS_COOPERATIVE = "coalesce(protocol LIKE '%cooperative%', false)"
STATE = struct(group=STRING, topic=STRING, partition=INT, owner=_OWNER, record_partition=INT, record_offset=LONG)


def build_moves(steps: DataFrame, members: DataFrame, before: DataFrame, consumer: Told, writer: Writer) -> None:
    """Write the table and the state for new records of groups, as ordered by ``groups``, and their members."""
    begun = steps.where("_begins_assignment_run AND _is_there AND NOT _is_before")
    rows = _owned(begun.join(members, ["group", *RECORD_ORDER]), before).persist(StorageLevel.DISK_ONLY)
    try:
        converted = consumer.rows("member_changes").where(f.col("change") == CONVERTED)
        converted = converted.select("group", "at", f.col("member_id").alias("to_member"))
        # Members that were in the group before it became a classic one have taken no partitions then.
        taken = _taken(rows).join(f.broadcast(converted), ["group", "at", "to_member"], "left_anti")
        moves = taken.select(*PARTITION_MOVES.names).unionByName(_lost(rows, begun)).unionByName(consumer.rows("partition_moves"))
        writer.table("partition_moves", by_key(moves, *KEY), *KEY, *RECORD_ORDER, "to_member")
        era_now = steps.where("_is_newest AND _is_there").select("group", f.col("_era").alias("_era_now"))
        now = rows.where("_is_newest").join(era_now, ["group"]).where("owner.era = _era_now")
        writer.state("partition_owners", by_key(now.select(*STATE.names), *KEY), *KEY)
    finally:
        rows.unpersist()


def _owned(begun: DataFrame, before: DataFrame) -> DataFrame:
    """Return a row for each partition and run with an owner, and the owner before; includes the last owners of earlier passes."""
    held = """inline(flatten(transform(members, member -> transform(coalesce(member.assignment, array()), each -> struct(
        each.topic AS topic,
        each.partitions AS partitions,
        member.member_id AS member_id,
        coalesce(member.group_instance_id, member.member_id) AS known_by,
        member.client_id AS client_id)))))"""
    rows = begun.selectExpr("group", "generation", "at", "protocol", "_era", "_assignment_run", *RECORD_ORDER, held)
    rows = rows.withColumn("partition", f.explode("partitions")).drop("partitions")
    when = (f.col("_era").alias("era"), f.col("_assignment_run").alias("run"))
    owner = f.struct("member_id", "known_by", "client_id", *when).cast(_OWNER)
    rows = rows.select(*KEY, "generation", "at", "protocol", *RECORD_ORDER, owner.alias("owner"))
    rows = rows.withColumn("_is_before", f.lit(False))
    rows = by_key(rows.unionByName(before.withColumn("_is_before", f.lit(True)), allowMissingColumns=True), *KEY)
    # A custom assignor may give a partition to two members. Their order is arbitrary, but always the same.
    in_order = Window.partitionBy(*KEY).orderBy(*RECORD_ORDER, "owner.member_id")
    return rows.withColumns(
        {
            "_previous": f.lag("owner").over(in_order),
            "_is_newest": f.lead("record_offset").over(in_order).isNull(),
        }
    )


def _taken(rows: DataFrame) -> DataFrame:
    """Return ``PARTITION_MOVES`` of partitions with a new owner."""
    rows = rows.where("NOT _is_before").withColumn("_from", f.expr("CASE WHEN _previous.era = owner.era THEN _previous END"))
    rows = rows.where("_from IS NULL OR _from.known_by != owner.known_by")
    is_cooperative = f"{_IS_COOPERATIVE} OR coalesce(owner.run - _from.run > 1, false)"
    return rows.selectExpr(
        *KEY,
        "generation",
        "at",
        "_from.member_id AS from_member",
        "owner.member_id AS to_member",
        "_from.client_id AS from_client_id",
        "owner.client_id AS to_client_id",
        f"CASE WHEN {is_cooperative} THEN 'cooperative' ELSE 'eager' END AS rebalance_kind",
        "CAST(NULL AS LONG) AS kept_ms",
        *RECORD_ORDER,
    ).select(*PARTITION_MOVES.names)


def _lost(rows: DataFrame, begun: DataFrame) -> DataFrame:
    """Return ``PARTITION_MOVES`` of partitions whose group became empty."""
    emptied = begun.where("state = 'Empty'").selectExpr(
        "group", "_assignment_run AS run", "generation", "at", "_previous_protocol AS protocol", *RECORD_ORDER
    )
    rows = rows.select(*KEY, "owner", (f.col("owner.run") + 1).alias("run")).join(emptied, ["group", "run"])
    return rows.selectExpr(
        *KEY,
        "generation",
        "at",
        "owner.member_id AS from_member",
        "CAST(NULL AS STRING) AS to_member",
        "owner.client_id AS from_client_id",
        "CAST(NULL AS STRING) AS to_client_id",
        f"CASE WHEN {_IS_COOPERATIVE} THEN 'cooperative' ELSE 'eager' END AS rebalance_kind",
        "CAST(NULL AS LONG) AS kept_ms",
        *RECORD_ORDER,
    ).select(*PARTITION_MOVES.names)
