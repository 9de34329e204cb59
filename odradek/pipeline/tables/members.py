"""``member_changes``: who is in a group's record and not in the one before, and the other way round.

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


def build_member_changes(new: DataFrame, commits: Commits, writer: Writer) -> None:
    """Write the table for new records of groups, as ``groups`` has ordered them."""
    changes = _changes(new)
    heard = _heard(changes.where("_is_suspect AND change = 'left'"), commits)
    has_gone_silent = "_heard_at > _previous_at AND unix_millis(at) - unix_millis(_heard_at) >= member.session_timeout"
    rows = changes.join(heard, list(_MEMBER), "left").withColumn(
        "change",
        f.when(
            f.expr(f"change = 'left' AND _is_suspect AND (member.group_instance_id IS NOT NULL OR {has_gone_silent})"), "expired"
        ).otherwise(f.col("change")),
    )
    rows = rows.select("*", "member.group_instance_id", "member.client_id", "member.client_host")
    writer.table("member_changes", by_key(rows.select(*MEMBER_CHANGES.names), "group"), *_MEMBER, "change")


def _changes(new: DataFrame) -> DataFrame:
    """A row a change, with the ``member`` as it was then; ``_is_suspect`` where it may have expired."""
    ids = "transform({}, member -> member.member_id)"
    instances = "transform(filter({}, member -> array_contains({}, member.member_id)), member -> member.group_instance_id)"
    rows = new.withColumn("_before", f.expr("coalesce(_previous_members, array())"))
    rows = rows.withColumn("_came", f.expr(f"array_except({ids.format('members')}, {ids.format('_before')})"))
    rows = rows.withColumn("_went", f.expr(f"array_except({ids.format('_before')}, {ids.format('members')})"))
    rows = rows.where("size(_came) + size(_went) > 0")
    rows = rows.withColumn(
        "_bounced",
        f.expr(
            f"filter(array_intersect({instances.format('members', '_came')}, {instances.format('_before', '_went')}), "
            "instance -> instance IS NOT NULL)"
        ),
    )
    is_bounced = "coalesce(array_contains(_bounced, member.group_instance_id), false)"
    came = f"""transform(filter(members, member -> array_contains(_came, member.member_id)), member -> struct(
        member AS member, CASE WHEN {is_bounced} THEN 'bounced_static' ELSE 'joined' END AS change))"""
    went = f"""transform(filter(_before, member -> array_contains(_went, member.member_id) AND NOT {is_bounced}),
        member -> struct(member AS member, 'left' AS change))"""
    changes = f.expr(f"inline(concat({came}, {went}))")
    rows = rows.select("group", "generation", "at", "_previous_at", *_RECORD_ORDER, changes)
    # Before version 1 of the record there is no rebalance timeout: it is the session's.
    rebalance_ms = "if(member.rebalance_timeout < 0, member.session_timeout, member.rebalance_timeout)"
    timeout_ms = f"least(member.session_timeout, {rebalance_ms})"
    is_suspect = f.expr(f"unix_millis(at) - unix_millis(_previous_at) >= {timeout_ms}")
    return rows.withColumns({"member_id": f.col("member.member_id"), "_is_suspect": f.coalesce(is_suspect, f.lit(False))})


def _heard(suspects: DataFrame, commits: Commits) -> DataFrame:
    """When a commit was last made for a partition that the member had, before the record that it is missing from."""
    owned = suspects.selectExpr("group", *_RECORD_ORDER, "member_id", "inline(member.assignment)")
    owned = owned.select("group", *_RECORD_ORDER, "member_id", "topic", f.explode("partitions").alias("partition"))
    made = commits.found.where("kind != 'deleted'").select(*KEY, *_RECORD_ORDER, "at")
    made = made.unionByName(commits.before.select(*KEY, *_RECORD_ORDER, "at"))
    made = made.join(owned.select("group").distinct(), ["group"], "left_semi")
    rows = by_key(made.unionByName(owned, allowMissingColumns=True), *KEY)
    until_now = Window.partitionBy(*KEY).orderBy(*_RECORD_ORDER).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    rows = rows.withColumn("_heard_at", f.last("at", ignorenulls=True).over(until_now)).where("member_id IS NOT NULL")
    return rows.groupBy(*_MEMBER).agg(f.max("_heard_at").alias("_heard_at"))
