"""The columns of the tables, as Spark types: one definition for writers and readers.

Tables are built from ``raw``:

    tables/NAME/batch=N/*.parquet    history: the new rows of pass N; append-only
    state/NAME/batch=N/*.parquet     snapshots: the state after pass N; replaced at each pass

Read either with ``odradek.pipeline.tables.read_table(spark, warehouse, name)``. It returns exactly the columns below, in this
order; no rows before the first pass; no rows of a pass that is not done; rows in no particular order. A history table has the
rows of all passes, a snapshot those of the newest pass.

In tables, ``at`` is always the broker's timestamp of the record behind the row. ``record_partition`` and ``record_offset`` are
that record's coordinates in its topic: rows of one group, or of one transactional id, are ordered by ``record_offset``, also if
their ``at`` is the same. Durations are in the unit that ends their name. Unknown values are null.
"""

from pyspark.sql.types import ArrayType, DataType, DoubleType

from odradek.pipeline.schema import BOOLEAN, END_OFFSETS, INT, LONG, MEMBER, STRING, TIME, struct

_RECORD: dict[str, DataType] = {"record_partition": INT, "record_offset": LONG}
RECORD_ORDER = tuple(_RECORD)
_PARTITIONS = ArrayType(struct(topic=STRING, partition=INT))

GROUP_GENERATIONS = struct(
    group=STRING,
    generation=INT,
    protocol_type=STRING,
    protocol=STRING,
    leader=STRING,
    members=ArrayType(STRING),
    member_count=INT,
    assignment=ArrayType(struct(member_id=STRING, topic=STRING, partitions=ArrayType(INT))),
    state=STRING,
    at=TIME,
    since_last_ms=LONG,
    sync_ms=LONG,
    partition=INT,
    offset=LONG,
    reason=STRING,
    group_type=STRING,
    why=STRING,
)
"""A row for each generation of a group. ``members`` are sorted ids. ``assignment`` is sorted, and only of groups of consumers.

``state`` is Stable, Reconciling or Empty. ``since_last_ms``: since the generation before. ``sync_ms``: from the end of the join
phase to the assignment; how long the join phase took is not in the log. ``reason``: ``first`` (the first one known), ``empty``
(everyone has gone), ``members`` (somebody came or went), ``assignment`` (the same members once more). ``partition`` and
``offset`` are the record's. ``group_type`` is Classic, Consumer or Share.

A generation of a consumer group (KIP-848) is an epoch of its target assignment. ``assignment`` is the target;
``partition_moves`` shows when members reach it. ``sync_ms``: from the rise of the epoch to its assignment. ``protocol``:
the assignor, null if no member names one. ``why``: the changes; null for a classic group, whose log does not have them.

A generation of a share group (KIP-932) is the same. Its members may share a partition, so ``partition_moves`` has none of it.
"""

MEMBER_CHANGES = struct(
    group=STRING,
    generation=INT,
    at=TIME,
    member_id=STRING,
    group_instance_id=STRING,
    client_id=STRING,
    client_host=STRING,
    change=STRING,
    for_left=STRING,
    for_expired=STRING,
    **_RECORD,
)
"""A row for each member that joined or went. ``generation`` is the first with or without it; in a consumer group, the epoch that
it raised.

``change``: ``joined``; ``left`` or ``expired``, where the log knows which; ``gone``, where it does not; ``bounced_static``
(another ``member_id``, here the new one, under the same ``group_instance_id``); ``away_static`` (a static member of a consumer
group that left for now, and is a member still). ``for_left`` and ``for_expired``: what speaks for either; null if nothing does.
"""

PARTITION_MOVES = struct(
    group=STRING,
    generation=INT,
    at=TIME,
    topic=STRING,
    partition=INT,
    from_member=STRING,
    to_member=STRING,
    from_client_id=STRING,
    to_client_id=STRING,
    rebalance_kind=STRING,
    kept_ms=LONG,
    **_RECORD,
)
"""A row for each change of a partition's owner. Null means no owner: ``from_member`` in a group's first generation, or the first
after it was empty, and ``to_member`` when it has become empty. ``rebalance_kind``: eager or cooperative; a cooperative
move, given up in one generation and taken in the next, is one row, of the generation it was taken in.

A move in a consumer group is cooperative, and of the record that says that the new owner has the partition. ``kept_ms``: from the
target assignment without it until the old owner gave it up; null where that one was not asked, as if it is gone, and of classic
groups.
"""

OFFSET_COMMITS = struct(
    group=STRING,
    topic=STRING,
    partition=INT,
    at=TIME,
    committed_offset=LONG,
    previous_offset=LONG,
    delta=LONG,
    seconds_since=DoubleType(),
    rate_per_s=DoubleType(),
    kind=STRING,
    metadata=STRING,
    leader_epoch=INT,
    **_RECORD,
)
"""A row for each commit. ``kind``: first, progress, repeat (the same offset), backward, deleted (``committed_offset`` is null).

``previous_offset``, ``delta`` and ``seconds_since`` are against the commit before, null for ``first``; ``rate_per_s`` is null
where no time has passed.
"""

LAG = struct(group=STRING, topic=STRING, partition=INT, sampled_at=TIME, end_offset=LONG, committed_offset=LONG, lag=LONG)
"""A row for each sample of ``end_offsets`` and each group with a commit by then: the last commit, and its lag."""

TRANSACTIONS = struct(
    transactional_id=STRING,
    producer_id=LONG,
    producer_epoch=INT,
    start_at=TIME,
    ongoing_at=TIME,
    prepared_at=TIME,
    completed_at=TIME,
    outcome=STRING,
    partitions=_PARTITIONS,
    partition_count=INT,
    ongoing_ms=LONG,
    prepare_ms=LONG,
    total_ms=LONG,
    timeout_ms=INT,
    **_RECORD,
)
"""A row for each ended transaction. ``outcome``: committed, aborted, timed_out, fenced.

``start_at`` is what the coordinator says; ``ongoing_at``, ``prepared_at``, ``completed_at`` are the times of its first records in
these states. ``ongoing_ms`` is from start to prepared, ``prepare_ms`` from there to completed, ``total_ms`` their sum.
``producer_id`` and ``producer_epoch`` are those that it was written with. The coordinates are those of the completing record.
"""

OPEN_TRANSACTIONS = struct(
    transactional_id=STRING,
    producer_id=LONG,
    producer_epoch=INT,
    status=STRING,
    start_at=TIME,
    last_update_at=TIME,
    partitions=_PARTITIONS,
    timeout_ms=INT,
    **_RECORD,
)
"""A row for each open transaction. ``status``: Ongoing, PrepareCommit, PrepareAbort."""

SHARE_DELIVERIES = struct(
    group=STRING,
    topic=STRING,
    partition=INT,
    at=TIME,
    first_offset=LONG,
    last_offset=LONG,
    records=LONG,
    change=STRING,
    state=STRING,
    delivery_count=INT,
    previous_state=STRING,
    previous_delivery_count=INT,
    held_ms=LONG,
    first_returned_at=TIME,
    **_RECORD,
)
"""A row for each end of a delivery to a share group, of consecutive records that were alike before and are alike after it.

``change``: ``accepted``; ``returned``, to be delivered again: a member released the records, or its acquisition lock expired;
``archiving``, on the way to the dead-letter queue; ``archived``, never to be delivered again: rejected, or at the delivery count
limit, or no record. ``state`` and ``previous_state`` are Kafka's, Available for records without a state.

``held_ms``: the time since the records were returned before, and so the longest time that a member can have had them; null at
the first delivery, whose beginning is not in the log. ``first_returned_at``: the time of the first return; null without one.
"""

SHARE_PROGRESS = struct(
    group=STRING,
    topic=STRING,
    partition=INT,
    at=TIME,
    change=STRING,
    start_offset=LONG,
    previous_offset=LONG,
    delta=LONG,
    state_epoch=INT,
    leader_epoch=INT,
    snapshot_epoch=INT,
    delivery_complete_count=INT,
    **_RECORD,
)
"""A row for each change of a share partition's start offset, or of its state epoch or leader epoch.

``change``: ``first`` (the first one known), ``progress``, ``reset`` (a higher state epoch or a lower offset: the offsets were
altered, or the state was made anew), ``leader`` (another epoch of the partition's leader, and no more), ``deleted`` (the offset
and all that follows are null). ``start_offset`` is null until the group has read. ``delivery_complete_count``: the records from
the start offset on that are done with; null if unknown.
"""

SHARE_PARTITIONS_NOW = struct(
    group=STRING,
    topic=STRING,
    partition=INT,
    start_offset=LONG,
    state_epoch=INT,
    leader_epoch=INT,
    snapshot_epoch=INT,
    delivery_complete_count=INT,
    batches=ArrayType(
        struct(
            first_offset=LONG,
            last_offset=LONG,
            state=STRING,
            delivery_count=INT,
            since=TIME,
            first_returned_at=TIME,
        )
    ),
    at=TIME,
    **_RECORD,
)
"""A row for each existing share partition: its state after its newest record. ``batches`` are consecutive records in one state,
``since`` that time; null if a snapshot already had it when the log begins. Records that a member has are Available: acquiring is
not in the log.
"""

TASK_MOVES = struct(
    group=STRING,
    subtopology=STRING,
    partition=INT,
    generation=INT,
    at=TIME,
    from_member=STRING,
    to_member=STRING,
    from_client_id=STRING,
    to_client_id=STRING,
    from_process=STRING,
    to_process=STRING,
    is_stateful=BOOLEAN,
    had_standby=BOOLEAN,
    away_ms=LONG,
    **_RECORD,
)
"""A row for each active task of a streams group (KIP-1071) that a member got from another. ``generation`` is the member's epoch.

``from_member`` is null if no member is known to have had the task. ``is_stateful``: the subtopology has changelogs; null if its
topology is unknown. ``had_standby``: a member of the new process had a standby of the task. ``away_ms``: since the old member's
record without the task; null without such a record.
"""

TASKS_NOW = struct(
    group=STRING,
    subtopology=STRING,
    partition=INT,
    member_id=STRING,
    client_id=STRING,
    process_id=STRING,
    standby=ArrayType(STRING),
    at=TIME,
    **_RECORD,
)
"""A row for each task that members of a streams group have, as of the group's newest record. ``member_id`` has it as an active
task, null if no member does; ``standby`` are the ids of the members with a standby of it.
"""

GROUPS_NOW = struct(
    group=STRING,
    protocol_type=STRING,
    generation=INT,
    protocol=STRING,
    leader=STRING,
    members=ArrayType(MEMBER),
    state=STRING,
    group_type=STRING,
    at=TIME,
    **_RECORD,
)
"""A row for each existing group, classic, consumer or share, as of its newest record. Members of the latter two have their
present partitions as ``assignment``, and no ``session_timeout``, which is not in the log. A share group's have no
``rebalance_timeout`` either.
"""

OFFSETS_NOW = struct(
    group=STRING,
    topic=STRING,
    partition=INT,
    committed_offset=LONG,
    leader_epoch=INT,
    metadata=STRING,
    at=TIME,
    **_RECORD,
)
"""A row for each group and partition: the offset that is committed now."""

TRANSACTIONAL_IDS_NOW = struct(
    transactional_id=STRING,
    producer_id=LONG,
    producer_epoch=INT,
    timeout_ms=INT,
    status=STRING,
    partitions=_PARTITIONS,
    start_at=TIME,
    last_update_at=TIME,
    **_RECORD,
)
"""A row for each existing transactional id: its newest record. ``status`` is as in DescribeTransactions."""

HISTORY = {
    "group_generations": GROUP_GENERATIONS,
    "member_changes": MEMBER_CHANGES,
    "partition_moves": PARTITION_MOVES,
    "offset_commits": OFFSET_COMMITS,
    "lag": LAG,
    "transactions": TRANSACTIONS,
    "share_deliveries": SHARE_DELIVERIES,
    "share_progress": SHARE_PROGRESS,
    "task_moves": TASK_MOVES,
}
SNAPSHOTS = {
    "open_transactions": OPEN_TRANSACTIONS,
    "groups_now": GROUPS_NOW,
    "offsets_now": OFFSETS_NOW,
    "transactional_ids_now": TRANSACTIONAL_IDS_NOW,
    "share_partitions_now": SHARE_PARTITIONS_NOW,
    "tasks_now": TASKS_NOW,
}
SAMPLES = "end_offsets"
TABLES = HISTORY | SNAPSHOTS | {SAMPLES: END_OFFSETS}
"""Every table that ``read_table`` knows, by name. ``end_offsets`` has the samples that the passes have read."""
