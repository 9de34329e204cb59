"""``group_generations``, ``groups_now`` and ``member_changes``; and classic groups' records in order, the input of moves.

A classic group's record holds its whole state: generation and members. A record with the same generation as the one before is
no new generation: a static member returned under another member id. A record of generation 0 creates the group.

The records of a group with a thousand members are large, and mostly repeat the members of the record before. The window
functions therefore work on ``steps``: records without their members, with hashes of the member ids and of the assignments
instead. Consecutive steps with equal hashes are a run, numbered within the group. Members are read only at the start or the
end of a run.

``member_changes`` has members that are in a group's record and not in the one before, or the other way round. Each member is
tracked separately, over the runs of records with the same members. It joined in the first run that has it after a run without
it, and it was gone in the next run without it. So a large group becomes many small histories.

The log does not say why a member of a classic group is gone. Only these two facts follow from it:

    left      the time since the end of the last join phase is shorter than any timeout that could have removed the member
    expired   otherwise, if it is a static member: closing a static member does not make it leave

Every other member is ``gone``. Its commits since it joined, for its own partitions, are evidence for one or the other.

The rows of ``consumer_groups`` are added to each table.
"""

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from odradek.pipeline.schema import CLASSIC, GROUP_METADATA, LONG, TIME, struct
from odradek.pipeline.tables.consumer_story import CONVERTED
from odradek.pipeline.tables.files import Writer, by_key
from odradek.pipeline.tables.moves import build_moves
from odradek.pipeline.tables.offsets import KEY, Commits
from odradek.pipeline.tables.schema import GROUP_GENERATIONS, GROUPS_NOW, MEMBER_CHANGES, RECORD_ORDER
from odradek.pipeline.tables.stories import Told

_MEMBER = (*KEY[:1], *RECORD_ORDER, "member_id")
_TOLD = (
    "member_id",
    "group_instance_id",
    "client_id",
    "client_host",
    "rebalance_timeout",
    "session_timeout",
    "assignment",
)
# The session timeout of consumer groups is a config of the broker, or of the group. A commit within a heartbeat interval is
# recent, whatever that timeout is.
_DEFAULT_HEARTBEAT_MS = 5_000
_DEFAULT_SESSION_TIMEOUT_MS = 45_000


def build_member_changes(steps: DataFrame, members: DataFrame, commits: Commits, consumer: Told, writer: Writer) -> None:
    """Write the table for the members in new records of classic groups, in the order of ``groups``, and of consumer groups."""
    classic = _told_of_classic(_changes(steps, members))
    changes = classic.unionByName(consumer.rows("member_changes"), allowMissingColumns=True)
    changes = _without_converted(by_key(changes, "group")).persist(StorageLevel.DISK_ONLY)
    try:
        heard = _heard(changes.where("change = 'gone'"), commits)
        rows = _with_commits(changes.join(heard, list(_MEMBER), "left"))
        writer.table("member_changes", by_key(rows.select(*MEMBER_CHANGES.names), "group"), *_MEMBER, "change")
    finally:
        changes.unpersist()


def _without_converted(changes: DataFrame) -> DataFrame:
    """Drop both changes of a member that stayed while its group became classic. Other members of the old group are gone."""
    at_once = Window.partitionBy("group", "at", "member_id")
    is_converted = f.col("change") == CONVERTED
    rows = changes.withColumns(
        {
            "_was_there": f.max(is_converted).over(at_once),
            "_is_there": f.max(f.col("change") == "joined").over(at_once),
        }
    )
    rows = rows.where("NOT (_was_there AND _is_there)").drop("_was_there", "_is_there")
    return rows.withColumn("change", f.when(is_converted, "gone").otherwise(f.col("change")))


def _changes(steps: DataFrame, members: DataFrame) -> DataFrame:
    """Return a row for each change, with the member then. ``_since`` is the end of the join phase before, if known."""
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
        CASE WHEN _next_run IS NULL OR _next_run > run + 1 THEN struct(run + 1 AS run, 'gone' AS change) END
    ), event -> event IS NOT NULL))"""
    rows = rows.selectExpr("group", *_TOLD, events)
    begun = steps.where("_begins_member_run AND _is_there AND NOT _is_before").selectExpr(
        "group", "_member_run AS run", "generation", "at", "_generation_before.joined_at AS _since", *RECORD_ORDER
    )
    return rows.join(begun, ["group", "run"])


def _seen(steps: DataFrame, members: DataFrame) -> DataFrame:
    """Return a row for each member and run that has it, with its fields in the run's last record, partitioned by member."""
    ended = steps.where("_ends_member_run AND _is_there").select("group", *RECORD_ORDER, f.col("_member_run").alias("run"))
    rows = ended.join(members, ["group", *RECORD_ORDER]).selectExpr(
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


def _told_of_classic(changes: DataFrame) -> DataFrame:
    """Replace ``gone`` by ``left`` or ``expired`` where the log shows which, and add the reason."""
    # Records before version 1 have no rebalance timeout; the session timeout applies.
    shortest_ms = f.expr("least(session_timeout, if(rebalance_timeout < 0, session_timeout, rebalance_timeout))")
    since_ms = _millis_between("_since", "at")
    is_gone = f.col("change") == "gone"
    has_left = is_gone & (since_ms < shortest_ms)
    has_expired = is_gone & (since_ms >= shortest_ms) & f.col("group_instance_id").isNotNull()
    left = f.format_string("it was gone %d ms after it had joined, before its shortest timeout, %d ms", since_ms, shortest_ms)
    expired = f.format_string("a static member does not leave when it is closed; its shortest timeout is %d ms", shortest_ms)
    return changes.withColumns(
        {
            "change": f.when(has_left, "left").when(has_expired, "expired").otherwise(f.col("change")),
            "for_left": f.when(has_left, left),
            "for_expired": f.when(has_expired, expired),
        }
    )


def _with_commits(rows: DataFrame) -> DataFrame:
    """Add the evidence from the last commits of members that are gone."""
    silent_ms, timeout_ms = _millis_between("_heard_at", "at"), f.col("session_timeout")
    is_gone = (f.col("change") == "gone") & (f.col("_heard_at") > f.col("_since"))
    is_known = timeout_ms.isNotNull()
    not_own = "and the log does not have its session timeout"
    own = f.format_string("its session timeout is %d ms", timeout_ms)
    heartbeat = f"Kafka's default heartbeat interval is {_DEFAULT_HEARTBEAT_MS} ms, {not_own}"
    session = f"Kafka's default session timeout is {_DEFAULT_SESSION_TIMEOUT_MS} ms, {not_own}"
    is_recent = silent_ms < f.when(is_known, timeout_ms).otherwise(_DEFAULT_HEARTBEAT_MS)
    is_old = silent_ms >= f.when(is_known, timeout_ms).otherwise(_DEFAULT_SESSION_TIMEOUT_MS)
    left = f.format_string("it had committed %d ms before; %s", silent_ms, f.when(is_known, own).otherwise(heartbeat))
    expired = f.format_string("it had committed, and then not for %d ms; %s", silent_ms, f.when(is_known, own).otherwise(session))
    both = f.concat_ws("; ", "for_expired", f.when(is_gone & is_old, expired))
    return rows.withColumns(
        {
            "for_left": f.when(is_gone & is_recent, left).otherwise(f.col("for_left")),
            "for_expired": f.when(both != "", both),
        }
    )


def _heard(gone: DataFrame, commits: Commits) -> DataFrame:
    """Return the time of the last commit for a partition of the member, before the record that lacks the member."""
    owned = gone.selectExpr("group", *RECORD_ORDER, "member_id", "inline(assignment)")
    owned = owned.select("group", *RECORD_ORDER, "member_id", "topic", f.explode("partitions").alias("partition"))
    made = commits.found.where("kind != 'deleted'").select(*KEY, *RECORD_ORDER, "at")
    made = made.unionByName(commits.before.select(*KEY, *RECORD_ORDER, "at"))
    made = made.join(owned.select("group").distinct(), ["group"], "left_semi")
    rows = by_key(made.unionByName(owned, allowMissingColumns=True), *KEY)
    until_now = Window.partitionBy(*KEY).orderBy(*RECORD_ORDER).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    rows = rows.withColumn("_heard_at", f.last("at", ignorenulls=True).over(until_now)).where("member_id IS NOT NULL")
    return rows.groupBy(*_MEMBER).agg(f.max("_heard_at").alias("_heard_at"))


def _millis_between(earlier: str, later: str) -> Column:
    return f.unix_millis(later) - f.unix_millis(earlier)


_KEY = "group"
# A generation's first record: its time, and the end of the join phase, null if the record lacks it.
_GENERATION = struct(at=TIME, joined_at=TIME)
# ``_era`` counts how often the group was empty or deleted. ``_generation`` is the present one.
STATE = struct(GROUPS_NOW, _era=LONG, _member_run=LONG, _assignment_run=LONG, _generation=_GENERATION)
_ASSIGNMENT = """sort_array(flatten(transform(members, member -> coalesce(
    transform(member.assignment, each -> struct(
        member.member_id AS member_id, each.topic AS topic, sort_array(each.partitions) AS partitions)),
    array()))))"""
_IDS = "sort_array(transform(members, member -> member.member_id))"
# The names that identify members: a static member keeps its instance id under another member id.
_KNOWN_BY = "sort_array(transform(members, member -> coalesce(member.group_instance_id, member.member_id)))"


def build_groups(raw: DataFrame, before: DataFrame, owners: DataFrame, commits: Commits, consumer: Told, writer: Writer) -> None:
    """Write all tables of groups.

    The input is new ``RAW`` rows, the ``STATE`` and the owners of partitions before them, and the rows of consumer groups.
    """
    records = _records(raw, before)
    members = records.select(_KEY, *RECORD_ORDER, "members")
    steps = _steps(records).persist(StorageLevel.DISK_ONLY)
    try:
        generations = _generations(steps.where("_is_generation").join(members, [_KEY, *RECORD_ORDER]))
        generations = generations.unionByName(consumer.rows("group_generations"))
        writer.table("group_generations", by_key(generations, _KEY), _KEY, "partition", "offset")
        now = steps.where("_is_newest AND _is_there").join(members, [_KEY, *RECORD_ORDER])
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
    in_order = Window.partitionBy(_KEY).orderBy(*RECORD_ORDER)
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
