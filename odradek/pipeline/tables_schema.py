"""The columns of the tables that are built from ``raw``, as Spark types: one definition for writers and readers.

    tables/NAME/batch=N/*.parquet    history: the new rows of pass N; append-only
    state/NAME/batch=N/*.parquet     snapshots: the state after pass N; replaced at each pass

Read either with ``odradek.pipeline.tables.read_table(spark, warehouse, name)``. It returns exactly the columns below, in this
order; no rows before the first pass; no rows of a pass that is not done; rows in no particular order. A history table has the
rows of all passes, a snapshot those of the newest pass.

``at`` is always the broker's timestamp of the record behind the row. ``record_partition`` and ``record_offset`` are that
record's coordinates in its topic: rows of one group, or of one transactional id, are ordered by ``record_offset``, also if
their ``at`` is the same. Durations are in the unit that ends their name. Unknown values are null.
"""

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
)

from odradek.pipeline.schema import END_OFFSETS, MEMBER, struct

_STRING, _INT, _LONG, _TIME = StringType(), IntegerType(), LongType(), TimestampType()
_RECORD: dict[str, DataType] = {"record_partition": _INT, "record_offset": _LONG}
_PARTITIONS = ArrayType(struct(topic=_STRING, partition=_INT))

GROUP_GENERATIONS = struct(
    group=_STRING,
    generation=_INT,
    protocol_type=_STRING,
    protocol=_STRING,
    leader=_STRING,
    members=ArrayType(_STRING),
    member_count=_INT,
    assignment=ArrayType(struct(member_id=_STRING, topic=_STRING, partitions=ArrayType(_INT))),
    state=_STRING,
    at=_TIME,
    since_last_ms=_LONG,
    sync_ms=_LONG,
    partition=_INT,
    offset=_LONG,
    reason=_STRING,
    group_type=_STRING,
    why=_STRING,
)
"""A row for each generation of a group. ``members`` are sorted ids. ``assignment`` is sorted, and only of groups of consumers.

``state`` is Stable, Reconciling or Empty. ``since_last_ms``: since the generation before. ``sync_ms``: from the end of the join
phase to the assignment; how long the join phase took is not in the log. ``reason``: ``first`` (the first one known), ``empty``
(everyone has gone), ``members`` (somebody came or went), ``assignment`` (the same members once more). ``partition`` and
``offset`` are the record's. ``group_type`` is Classic or Consumer.

A generation of a consumer group (KIP-848) is an epoch of its target assignment. ``assignment`` is the target;
``partition_moves`` shows when members reach it. ``sync_ms``: from the rise of the epoch to its assignment. ``protocol``:
the assignor, null if no member names one. ``why``: the changes; null for a classic group, whose log does not have them.
"""

MEMBER_CHANGES = struct(
    group=_STRING,
    generation=_INT,
    at=_TIME,
    member_id=_STRING,
    group_instance_id=_STRING,
    client_id=_STRING,
    client_host=_STRING,
    change=_STRING,
    for_left=_STRING,
    for_expired=_STRING,
    **_RECORD,
)
"""A row for each member that joined or went. ``generation`` is the first with or without it; in a consumer group, the epoch that
it raised.

``change``: ``joined``; ``left`` or ``expired``, where the log knows which; ``gone``, where it does not; ``bounced_static``
(another ``member_id``, here the new one, under the same ``group_instance_id``); ``away_static`` (a static member of a consumer
group that left for now, and is a member still). ``for_left`` and ``for_expired``: what speaks for either; null if nothing does.
"""

PARTITION_MOVES = struct(
    group=_STRING,
    generation=_INT,
    at=_TIME,
    topic=_STRING,
    partition=_INT,
    from_member=_STRING,
    to_member=_STRING,
    from_client_id=_STRING,
    to_client_id=_STRING,
    rebalance_kind=_STRING,
    kept_ms=_LONG,
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
    group=_STRING,
    topic=_STRING,
    partition=_INT,
    at=_TIME,
    committed_offset=_LONG,
    previous_offset=_LONG,
    delta=_LONG,
    seconds_since=DoubleType(),
    rate_per_s=DoubleType(),
    kind=_STRING,
    metadata=_STRING,
    leader_epoch=_INT,
    **_RECORD,
)
"""A row for each commit. ``kind``: first, progress, repeat (the same offset), backward, deleted (``committed_offset`` is null).

``previous_offset``, ``delta`` and ``seconds_since`` are against the commit before, null for ``first``; ``rate_per_s`` is null
where no time has passed.
"""

LAG = struct(group=_STRING, topic=_STRING, partition=_INT, sampled_at=_TIME, end_offset=_LONG, committed_offset=_LONG, lag=_LONG)
"""A row for each sample of ``end_offsets`` and each group with a commit by then: the last commit, and its lag."""

TRANSACTIONS = struct(
    transactional_id=_STRING,
    producer_id=_LONG,
    producer_epoch=_INT,
    start_at=_TIME,
    ongoing_at=_TIME,
    prepared_at=_TIME,
    completed_at=_TIME,
    outcome=_STRING,
    partitions=_PARTITIONS,
    partition_count=_INT,
    ongoing_ms=_LONG,
    prepare_ms=_LONG,
    total_ms=_LONG,
    timeout_ms=_INT,
    **_RECORD,
)
"""A row for each ended transaction. ``outcome``: committed, aborted, timed_out, fenced.

``start_at`` is what the coordinator says; ``ongoing_at``, ``prepared_at``, ``completed_at`` are the times of its first records in
these states. ``ongoing_ms`` is from start to prepared, ``prepare_ms`` from there to completed, ``total_ms`` their sum.
``producer_id`` and ``producer_epoch`` are those that it was written with. The coordinates are those of the completing record.
"""

OPEN_TRANSACTIONS = struct(
    transactional_id=_STRING,
    producer_id=_LONG,
    producer_epoch=_INT,
    status=_STRING,
    start_at=_TIME,
    last_update_at=_TIME,
    partitions=_PARTITIONS,
    timeout_ms=_INT,
    **_RECORD,
)
"""A row for each open transaction. ``status``: Ongoing, PrepareCommit, PrepareAbort."""

GROUPS_NOW = struct(
    group=_STRING,
    protocol_type=_STRING,
    generation=_INT,
    protocol=_STRING,
    leader=_STRING,
    members=ArrayType(MEMBER),
    state=_STRING,
    group_type=_STRING,
    at=_TIME,
    **_RECORD,
)
"""A row for each existing group, classic or consumer, as of its newest record. Members of a consumer group have their present
partitions as ``assignment``, and no ``session_timeout``, which is not in the log.
"""

OFFSETS_NOW = struct(
    group=_STRING,
    topic=_STRING,
    partition=_INT,
    committed_offset=_LONG,
    leader_epoch=_INT,
    metadata=_STRING,
    at=_TIME,
    **_RECORD,
)
"""A row for each group and partition: the offset that is committed now."""

TRANSACTIONAL_IDS_NOW = struct(
    transactional_id=_STRING,
    producer_id=_LONG,
    producer_epoch=_INT,
    timeout_ms=_INT,
    status=_STRING,
    partitions=_PARTITIONS,
    start_at=_TIME,
    last_update_at=_TIME,
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
}
SNAPSHOTS = {
    "open_transactions": OPEN_TRANSACTIONS,
    "groups_now": GROUPS_NOW,
    "offsets_now": OFFSETS_NOW,
    "transactional_ids_now": TRANSACTIONAL_IDS_NOW,
}
SAMPLES = "end_offsets"
TABLES = HISTORY | SNAPSHOTS | {SAMPLES: END_OFFSETS}
"""Every table that ``read_table`` knows, by name. ``end_offsets`` has the samples that the passes have read."""

STATE_DIR = "state"
