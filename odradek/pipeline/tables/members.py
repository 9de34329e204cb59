"""``member_changes``: members that are in a group's record and not in the one before, or the other way round.

Each member is followed by itself, over the runs of records with the same members. It joined in the first run that has it after
a run without it, and it left in the next run without it. So a large group becomes many small histories.

The log does not say whether a member left or expired. A change is ``expired`` if nothing else explains the log: the session
timeout (or the rebalance timeout, if shorter) has passed since the record before, and

    the member is static      closing a static member does not make it leave; or
    the member had committed  for partitions of its own since the record before, and then nothing for its session timeout

Every other change is ``left``. These include a lost member that never commits, and a member that an administrator removed.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from odradek.pipeline.tables.offsets import KEY, Commits
from odradek.pipeline.tables.writing import Writer, by_key
from odradek.pipeline.tables_schema import MEMBER_CHANGES

_RECORD_ORDER = ("record_partition", "record_offset")
_MEMBER = (*KEY[:1], *_RECORD_ORDER, "member_id")
_TOLD = (
    "member_id",
    "group_instance_id",
    "client_id",
    "client_host",
    "rebalance_timeout",
    "session_timeout",
    "assignment",
)


def build_member_changes(steps: DataFrame, members: DataFrame, commits: Commits, writer: Writer) -> None:
    """Write the table for new records of groups, as ordered by ``groups``, and their members."""
    changes = _changes(steps, members)
    heard = _heard(changes.where("_is_suspect AND group_instance_id IS NULL"), commits)
    has_gone_silent = "_heard_at > _previous_at AND unix_millis(at) - unix_millis(_heard_at) >= session_timeout"
    has_expired = f.expr(f"_is_suspect AND (group_instance_id IS NOT NULL OR coalesce({has_gone_silent}, false))")
    rows = changes.join(heard, list(_MEMBER), "left")
    rows = rows.withColumn("change", f.when(has_expired, "expired").otherwise(f.col("change")))
    writer.table("member_changes", by_key(rows.select(*MEMBER_CHANGES.names), "group"), *_MEMBER, "change")


def _changes(steps: DataFrame, members: DataFrame) -> DataFrame:
    """A row for each change, with the member as it was then; ``_is_suspect`` if the member may have expired."""
    rows = _seen(steps, members)
    in_order = Window.partitionBy("group", "known_by").orderBy("run")
    rows = rows.withColumns(
        {
            "_previous_run": f.lag("run").over(in_order),
            "_previous_id": f.lag("member_id").over(in_order),
            "_next_run": f.lead("run").over(in_order),
        }
    )
    events = """inline(filter(array(
        CASE WHEN _previous_run IS NULL OR _previous_run < run - 1 THEN struct(run AS run, 'joined' AS change)
            WHEN _previous_id != member_id THEN struct(run AS run, 'bounced_static' AS change) END,
        CASE WHEN _next_run IS NULL OR _next_run > run + 1 THEN struct(run + 1 AS run, 'left' AS change) END
    ), event -> event IS NOT NULL))"""
    rows = rows.selectExpr("group", *_TOLD, events)
    begun = steps.where("_begins_member_run AND _is_there AND NOT _is_before").selectExpr(
        "group", "_member_run AS run", "generation", "at", "_previous_at", *_RECORD_ORDER
    )
    rows = rows.join(begun, ["group", "run"])
    # Records before version 1 have no rebalance timeout; the session timeout applies.
    timeout_ms = "least(session_timeout, if(rebalance_timeout < 0, session_timeout, rebalance_timeout))"
    is_suspect = f"change = 'left' AND unix_millis(at) - unix_millis(_previous_at) >= {timeout_ms}"
    return rows.withColumn("_is_suspect", f.coalesce(f.expr(is_suspect), f.lit(False)))


def _seen(steps: DataFrame, members: DataFrame) -> DataFrame:
    """A row for each member and run that has it, with its fields in the run's last record, partitioned by member."""
    ended = steps.where("_ends_member_run AND _is_there").select("group", *_RECORD_ORDER, f.col("_member_run").alias("run"))
    rows = ended.join(members, ["group", *_RECORD_ORDER]).selectExpr(
        "group",
        "run",
        """inline(transform(members, member -> struct(
            coalesce(member.group_instance_id, member.member_id) AS known_by,
            member.member_id AS member_id,
            member.group_instance_id AS group_instance_id,
            member.client_id AS client_id,
            member.client_host AS client_host,
            member.rebalance_timeout AS rebalance_timeout,
            member.session_timeout AS session_timeout,
            member.assignment AS assignment)))""",
    )
    return by_key(rows, "group", "known_by")


def _heard(suspects: DataFrame, commits: Commits) -> DataFrame:
    """The time of the last commit for a partition of the member, before the record that the member is missing from."""
    owned = suspects.selectExpr("group", *_RECORD_ORDER, "member_id", "inline(assignment)")
    owned = owned.select("group", *_RECORD_ORDER, "member_id", "topic", f.explode("partitions").alias("partition"))
    made = commits.found.where("kind != 'deleted'").select(*KEY, *_RECORD_ORDER, "at")
    made = made.unionByName(commits.before.select(*KEY, *_RECORD_ORDER, "at"))
    made = made.join(owned.select("group").distinct(), ["group"], "left_semi")
    rows = by_key(made.unionByName(owned, allowMissingColumns=True), *KEY)
    until_now = Window.partitionBy(*KEY).orderBy(*_RECORD_ORDER).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    rows = rows.withColumn("_heard_at", f.last("at", ignorenulls=True).over(until_now)).where("member_id IS NOT NULL")
    return rows.groupBy(*_MEMBER).agg(f.max("_heard_at").alias("_heard_at"))
