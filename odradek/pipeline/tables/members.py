"""``member_changes``: who is in a group's record and not in the one before, and the other way round.

Each member is followed by itself, over the runs of records that have the same members: it came with the first run that has it
after one that has not, and went with the next one that has not. So a large group is as many small histories.

Whether a member left or expired is not in the log. It expired if that is the one way to read what is there: since the record
before, its session timeout has passed (or the rebalance timeout, if that is shorter) and

    it is static      such a member does not leave when it is closed; or
    it had committed  for partitions of its own since the record before, and then nothing for as long as its session timeout

Of any other ``left`` is said: also of one that never commits and was lost, and of one that was removed by an administrator.
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
    """Write the table for new records of groups, as ``groups`` has ordered them, and their members."""
    changes = _changes(steps, members)
    heard = _heard(changes.where("_is_suspect AND group_instance_id IS NULL"), commits)
    has_gone_silent = "_heard_at > _previous_at AND unix_millis(at) - unix_millis(_heard_at) >= session_timeout"
    has_expired = f.expr(f"_is_suspect AND (group_instance_id IS NOT NULL OR coalesce({has_gone_silent}, false))")
    rows = changes.join(heard, list(_MEMBER), "left")
    rows = rows.withColumn("change", f.when(has_expired, "expired").otherwise(f.col("change")))
    writer.table("member_changes", by_key(rows.select(*MEMBER_CHANGES.names), "group"), *_MEMBER, "change")


def _changes(steps: DataFrame, members: DataFrame) -> DataFrame:
    """A row a change, with the member as it was then; ``_is_suspect`` where it may have expired."""
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
    # Before version 1 of the record there is no rebalance timeout: it is the session's.
    timeout_ms = "least(session_timeout, if(rebalance_timeout < 0, session_timeout, rebalance_timeout))"
    is_suspect = f"change = 'left' AND unix_millis(at) - unix_millis(_previous_at) >= {timeout_ms}"
    return rows.withColumn("_is_suspect", f.coalesce(f.expr(is_suspect), f.lit(False)))


def _seen(steps: DataFrame, members: DataFrame) -> DataFrame:
    """A row a member and run of records that have it, as the last of them says it, spread by member."""
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
    """When a commit was last made for a partition that the member had, before the record that it is missing from."""
    owned = suspects.selectExpr("group", *_RECORD_ORDER, "member_id", "inline(assignment)")
    owned = owned.select("group", *_RECORD_ORDER, "member_id", "topic", f.explode("partitions").alias("partition"))
    made = commits.found.where("kind != 'deleted'").select(*KEY, *_RECORD_ORDER, "at")
    made = made.unionByName(commits.before.select(*KEY, *_RECORD_ORDER, "at"))
    made = made.join(owned.select("group").distinct(), ["group"], "left_semi")
    rows = by_key(made.unionByName(owned, allowMissingColumns=True), *KEY)
    until_now = Window.partitionBy(*KEY).orderBy(*_RECORD_ORDER).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    rows = rows.withColumn("_heard_at", f.last("at", ignorenulls=True).over(until_now)).where("member_id IS NOT NULL")
    return rows.groupBy(*_MEMBER).agg(f.max("_heard_at").alias("_heard_at"))
