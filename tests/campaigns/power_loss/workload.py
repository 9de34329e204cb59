"""The workload: steps, functions of the run, in an order in which each step works on the results of the others.

Further kinds of work (retention, compaction, moving partitions) are further steps.
"""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.campaigns.power_loss.clients import Producer, commit, delete_records, plain, produce, put
from tests.campaigns.power_loss.disk import Fault, Operation
from tests.campaigns.power_loss.node import CHECKPOINT_INTERVAL_MS, SEGMENT_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.campaigns.power_loss.run import Run

# The topics by their flush setting: with each record, by the broker's default, with each third record, after half a second.
TOPICS = {"strict": {"flush_messages": "1"}, "lazy": {}, "thrifty": {"flush_messages": "3"}, "timed": {"flush_ms": "500"}}
_DELETE_RETENTION_MS = 1_500
_PARTITIONS = [("strict", 0), ("strict", 1), ("lazy", 0), ("thrifty", 0), ("timed", 0)]


def create_topics(run: Run) -> None:
    """Create the topics of all workloads. If the broker's config syncs each record, the topics have no flush settings."""
    for topic, configs in TOPICS.items():
        run.do(run.create_topic(topic, 2 if topic == "strict" else 1, **({} if run.flush_messages == 1 else configs)))


def produce_a_little(run: Run) -> None:
    """One or two records for each partition, in one request."""
    batches = {}
    for number, name in enumerate(_PARTITIONS):
        batches[name] = plain(run, *(run.new_value() for _ in range(1 + number % 2)))
    run.do(produce(run, batches))


def produce_until_rolled(run: Run) -> None:
    """Batches of several records, one of them compressed, until each log has another segment."""
    for number in range(5):
        for name in _PARTITIONS:
            values = [run.new_value(40) for _ in range(3)]
            run.do(produce(run, {name: plain(run, *values, compression=4 if number == 2 else 0)}))
        run.node.wait(10)


def produce_idempotently(run: Run) -> None:
    """Batches of two producers with ids of their own."""
    for _ in range(2):
        run.do(_be_idempotent(run))


async def _be_idempotent(run: Run) -> None:
    producer = Producer(run)
    if await producer.begin():
        for name in (("strict", 0), ("lazy", 0)):
            for _ in range(3):
                await producer.send({name: [run.new_value()]})


def commit_a_transaction(run: Run) -> None:
    """A transaction over three logs, with a group's offsets."""
    run.do(have_a_transaction(run, "committing", [("strict", 1), ("lazy", 0), ("thrifty", 0)], group_id="transactional"))
    run.node.wait(20)


async def have_a_transaction(run: Run, transactional_id: str, names: list[tuple[str, int]], *, group_id: str) -> None:
    """A transaction with two batches, and offsets of the group."""
    producer = Producer(run, transactional_id)
    if not await producer.begin():
        return
    is_good = await producer.send({name: [run.new_value(), run.new_value()] for name in names})
    is_good = is_good and await producer.send({names[0]: [run.new_value()]})
    offset = run.values
    is_good = is_good and await producer.commit_offsets(group_id, {names[0]: offset})
    await producer.end(commit=is_good, offsets={(group_id, *names[0]): offset})


def abort_a_transaction(run: Run) -> None:
    """An abort while another producer's transaction is open, which commits afterwards."""
    first, second = Producer(run, "aborting"), Producer(run, "overlapping")
    names = [("strict", 0), ("lazy", 0), ("timed", 0)]
    if run.do(first.begin()):
        run.do(first.send({name: [run.new_value()] for name in names}))
    is_begun = run.do(second.begin()) and run.do(second.send({names[0]: [run.new_value()], names[1]: [run.new_value(30)]}))
    run.do(first.end(commit=False))
    run.node.wait(20)
    run.do(second.end(commit=is_begun))
    run.node.wait(20)


def leave_a_transaction_open(run: Run) -> None:
    """The broker aborts it at its timeout."""
    producer = Producer(run, "leaving")
    if run.do(producer.begin()):
        run.do(producer.send({("strict", 0): [run.new_value()], ("lazy", 0): [run.new_value()]}))


def commit_offsets(run: Run) -> None:
    """Two commits for three partitions, by a group without members."""
    for name in (("strict", 0), ("lazy", 0), ("strict", 0), ("timed", 0)):
        run.values += 1
        run.do(commit(run, "consumers", name, run.values))


def delete_some_records(run: Run) -> None:
    """DeleteRecords on two logs, up to an offset within a segment."""
    for name in (("strict", 0), ("lazy", 0)):
        log = run.node.broker.partitions.require(*name).log
        if log is not None:
            run.do(delete_records(run, name, log.log_start_offset + (log.log_end_offset - log.log_start_offset) // 2))


def replace_a_topic(run: Run) -> None:
    """Delete a topic with records, and create another one of the same name."""
    if run.do(run.create_topic("passing", 1, flush_messages="1")) is None:
        return
    run.do(produce(run, {("passing", 0): plain(run, run.new_value(), run.new_value())}))
    run.node.wait(CHECKPOINT_INTERVAL_MS)
    run.do(run.delete_topic("passing"))
    if run.do(run.create_topic("passing", 1, flush_messages="1")) is not None:
        run.do(produce(run, {("passing", 0): plain(run, run.new_value())}))


def wait_for_checkpoints(run: Run) -> None:
    """Wait until all periodic work has been done. What ``flush.ms`` promises is on disk then."""
    acknowledged = run.ends_of({"timed"})
    run.node.settle()
    for _ in range(2):
        run.node.wait(CHECKPOINT_INTERVAL_MS // 2 + 500)
        run.node.settle()
    # A disk that fails need not keep it.
    if run.disk.fault is None:
        run.are_synced(acknowledged)


def drop_old_segments(run: Run) -> None:
    """Retention deletes all but the last bytes of two logs, and their files a moment later."""
    for name in (("strict", 1), ("lazy", 0)):
        log = run.node.broker.partitions.require(*name).log
        if log is not None:
            log.config = replace(log.config, retention_bytes=SEGMENT_BYTES, file_delete_delay_ms=50)
            run.may_start_anywhere(name)
    run.node.call(run.node.broker.log_manager.retention.run, run.clock.now_ms())
    run.node.wait(200)


def create_compacted_topic(run: Run) -> None:
    """A topic whose logs are compacted as soon as they are dirty."""
    settings = {
        "cleanup_policy": "compact",
        "min_cleanable_dirty_ratio": "0.01",
        "delete_retention_ms": str(_DELETE_RETENTION_MS),
    }
    run.do(run.create_topic("compacted", 1, **settings))


def compact(run: Run) -> None:
    """Compact a log with few keys, with tombstones and transactions, and all other dirty compacted logs."""
    name = "compacted", 0
    create_compacted_topic(run)
    for number in range(6):
        run.do(put(run, name, {b"a": run.new_value(40), b"%d" % number: run.new_value(40), b"%d" % (number // 2): None}))
        if number % 3 == 0:
            producer = Producer(run, "compacting")
            is_good = run.do(producer.begin()) and run.do(producer.send({name: [run.new_value(30)]}))
            run.do(producer.end(commit=is_good and number == 0))
    run.node.wait(20)
    run.node.call(run.node.broker.log_cleaner.clean_due)


def move_logs(run: Run) -> None:
    """Move two logs to the other directory, if there is one, while one of them is written."""
    manager = run.node.broker.log_manager
    for number, name in enumerate((("lazy", 0), ("strict", run.values % 2))):
        partition = run.node.broker.partitions.require(*name)
        if partition.log is None:
            continue
        home = manager.home_of(partition.log)
        for target in manager.directories.online:
            if target is not home:
                run.node.call(run.node.broker.moves.request, partition, target)
        if number:
            run.do(produce(run, {name: plain(run, run.new_value())}))
    run.node.wait(200)


def lack_room_for_an_index(run: Run) -> None:
    """A marker's flush finds no room for the index of the active segment, and syncs records alone; the next marker's has room.

    The first flush has taken the indexes of full segments when it gives up. The second has to sync them.
    """
    name = "strict", 0
    producer = Producer(run, "committing")
    is_good = run.do(producer.begin())
    # Four segments and a part of a fifth, sooner than a periodic flush is due.
    for _ in range(14):
        is_good = is_good and run.do(producer.send({name: [run.new_value(150)]}))
    directory = run.node.broker.partitions.require(*name).require_log().directory

    def refuse(operation: Operation) -> Fault | None:
        is_index = operation.path.startswith(f"{directory}/") and operation.path.endswith(".index")
        return Fault(errno.ENOSPC) if is_index and operation.kind == "append" else None

    run.disk.fault = refuse
    run.do(producer.end(commit=is_good))
    run.disk.fault = None
    is_good = run.do(producer.begin()) and run.do(producer.send({name: [run.new_value()]}))
    run.do(producer.end(commit=is_good))
    run.node.wait(20)


def abort_where_only_decisions_are_synced(run: Run) -> None:
    """Abort a transaction whose records and offsets are synced, and commit the next one.

    The coordinator's log is synced with each record, markers are not: the power may take a marker, and leave a later decision.
    """
    name, group_id = ("lazy", 0), "transactional"
    run.do(have_a_transaction(run, "committing", [name], group_id=group_id))
    logs = [run.node.broker.partitions.require(*each).require_log() for each in (name, ("__consumer_offsets", 0))]
    decisions = run.node.broker.partitions.require("__transaction_state", 0).require_log()
    decisions.config = replace(decisions.config, flush_messages=1)
    producer = Producer(run, "aborting")
    for commit_it in (False, True):
        offset = run.values + 1_000
        run.do(producer.begin())
        run.do(producer.send({name: [run.new_value()]}))
        run.do(producer.commit_offsets(group_id, {name: offset}))
        if not commit_it:
            for log in logs:
                run.node.call(log.flush, run.clock.now_ms())
        run.do(producer.end(commit=commit_it, offsets={(group_id, *name): offset}))
    run.node.wait(20)


def restart(run: Run) -> None:
    """A clean stop and a start."""
    run.restart()


def be_killed(run: Run) -> None:
    """A kill and a start, on a disk that has everything and has not synced everything."""
    run.be_killed()


SMALL: list[Callable[[Run], None]] = [
    create_topics,
    produce_a_little,
    commit_offsets,
    produce_idempotently,
    produce_until_rolled,
    commit_a_transaction,
    drop_old_segments,
    wait_for_checkpoints,
    abort_a_transaction,
    delete_some_records,
    leave_a_transaction_open,
    produce_a_little,
    replace_a_topic,
    restart,
    produce_a_little,
    be_killed,
    produce_idempotently,
    abort_a_transaction,
    commit_offsets,
    produce_until_rolled,
    commit_a_transaction,
    produce_a_little,
    restart,
    produce_a_little,
]

# With a second data directory, so that logs can move.
COMPACTING: list[Callable[[Run], None]] = [
    create_topics,
    produce_a_little,
    compact,
    move_logs,
    compact,
    be_killed,
    move_logs,
    compact,
    restart,
    move_logs,
    produce_a_little,
]

# Short enough for the daily tests.
SHORT: list[Callable[[Run], None]] = [create_topics, produce_a_little, commit_a_transaction, restart, abort_a_transaction]

# A flush that gives up on indexes, one that makes up for it, and the checkpoint behind it.
WITHOUT_ROOM: list[Callable[[Run], None]] = [create_topics, lack_room_for_an_index, wait_for_checkpoints]

# Of the next transaction of a producer its decision may be left, and nothing of the marker of the one before.
WITHOUT_MARKERS: list[Callable[[Run], None]] = [create_topics, abort_where_only_decisions_are_synced]


def draw_large(rng: Random, step_count: int) -> list[Callable[[Run], None]]:
    """Steps in random order, the first of which creates the topics for the others."""
    others = sorted({*SMALL, compact, move_logs} - {create_topics}, key=lambda step: step.__name__)
    return [create_topics, *rng.choices(others, k=step_count)]
