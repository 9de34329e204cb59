"""Faults of the broker, and of a client, that histories of transactions have to find."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from odradek.broker.api import end_txn
from odradek.broker.coordination.transaction_coordinator import TransactionCoordinator
from odradek.broker.replica.fetch_partitions import FetchPartition, FetchPartitions
from odradek.broker.replica.partition import Partition
from odradek.coordinator.group import offset_fetch
from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.offsets import CommittedOffsets, PendingOffsets
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.coordinator.runtime.timeline import SnapshotRegistry
from odradek.coordinator.transaction import markers, operations, timeouts
from odradek.coordinator.transaction.markers import Markers
from odradek.coordinator.transaction.states import TransactionState
from odradek.coordinator.transaction.timeouts import Timeouts
from odradek.coordinator.transaction.transactions import Transactions
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.log import producer_restore, producer_state
from odradek.storage.log.log import Log
from odradek.storage.log.producer_restore import ProducerSnapshots
from odradek.storage.log.producer_state import ProducerStates
from odradek.storage.log.segment import Segment
from odradek.timing.reply import Reply
from tests.campaigns.planted import Change, Faults
from tests.campaigns.simulation.transactions import histories, requests

FAULTS = Faults(histories.run, most=200)
SAME = "a transaction's fate is the same on all its partitions"
COMPLETE = "a transaction is complete when all its partitions have markers"
OPEN = "each write belongs to an open transaction"
STABLE = "the last stable offset is where the oldest open transaction begins"
FOUND = "a fetch finds what is stable"
READ = "who reads committed records reads all of them, and no others"
REPLAYED = "the log replayed gives the live state"
FENCED = "nothing of a fenced epoch is written"
FETCHED = "offsets are fetched as the fates of their transactions say"
SUPERSEDED = "who is fenced was superseded"
REST = "all comes to rest"
IDENTITY = "producer id and epoch are one process's"
MISTAKE = "the broker makes no mistake"
TABLE = "transactions follow the table"
IN_ORDER = "who sends in order is taken in order"
MEMBERS = "a fenced member commits nothing"


def nothing(*_: Any) -> None:
    """Takes the place of what is left out."""


@FAULTS.around(Markers, "begin", COMPLETE)
def leave_out_a_marker(begin: Any, self: Markers, transactional_id: str, value: Any) -> None:
    fewer = frozenset(sorted(value.partitions)[:-1]) if len(value.partitions) > 1 else value.partitions
    begin(self, transactional_id, value._replace(partitions=fewer))


@FAULTS.around(CommittedOffsets, "replay_marker", REPLAYED, FETCHED)
def commit_offsets_that_are_aborted(_: Any, offsets: Any, producer_id: int, *, is_commit: bool) -> None:
    for key, at_offset, value in offsets.pending.end(producer_id):
        offsets.replay(key, value, at_offset)


@FAULTS.around(operations, "initialized", IDENTITY)
def initialise_without_a_new_epoch(
    initialized: Any, current: Any, timeout_ms: int, now_ms: int, *, epoch: int, last_epoch: int, producer_id: Any = None
) -> Any:
    kept = max(epoch - 1, 0) if producer_id is None else epoch
    return initialized(current, timeout_ms, now_ms, epoch=kept, last_epoch=last_epoch, producer_id=producer_id)


@FAULTS.around(ProducerSnapshots, "load", STABLE, first=40)
def restore_no_open_transactions(load: Any, snapshots: ProducerSnapshots, offset: int) -> Any:
    producers = load(snapshots, offset)
    if producers is not None:
        producers.open_transactions.clear()
        for producer in producers.by_id.values():
            producer.transaction_start = -1
    return producers


@FAULTS.around(TransactionCoordinator, "add_partitions", OPEN)
def append_before_partitions_are_added(add: Any, coordinator: TransactionCoordinator, *arguments: Any) -> Any:
    coordinator._services.call_soon(lambda: add(coordinator, *arguments))
    reply: Reply[Any] = Reply()
    reply.complete(ErrorCode.NONE)
    return reply


@FAULTS.around(FetchPartition, "ask", FOUND, READ)
def keep_the_first_offsets_of_a_session(ask: Any, partition: Any, asked: Any) -> None:
    if not hasattr(partition, "fetch_offset"):
        ask(partition, asked)


@FAULTS.around(ClassicGroup, "validate_offset_commit", MEMBERS)
def let_any_generation_commit(
    validate: Any, group: Any, member_id: str, instance_id: Any, generation: int, **request: Any
) -> Any:
    return validate(group, member_id, instance_id, generation if generation < 0 else group.generation, **request)


@FAULTS.around(
    ProducerStates,
    "check",
    *("transactions are read in the order in which they were made", "nothing is appended twice"),
    first=40,
)
def take_any_sequence(check: Any, states: ProducerStates, header: Any) -> Any:
    try:
        return check(states, header)
    except KafkaError as error:
        if error.code is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            raise
        return None


FAULTS.add(
    "let_anybody_be_the_producer",
    *(Change(module, "check_producer", nothing) for module in (operations, operations)),
    finds=(FENCED, IDENTITY),
)
FAULTS.put("take_batches_unverified", ProducerStates, "needs_verification", lambda *_: False, OPEN, FENCED)
FAULTS.put("complete_while_markers_wait", markers, "_NOT_NEEDED", frozenset(ErrorCode), COMPLETE)
FAULTS.wrap(
    "write_markers_of_both_kinds",
    Partition,
    "append_marker",
    lambda append, partition, marker, now_ms: append(
        partition, marker._replace(is_commit=marker.is_commit or partition.index == 1), now_ms
    ),
    SAME,
)
FAULTS.put("end_nothing_after_a_load", Markers, "resume", nothing, REST, SUPERSEDED)
FAULTS.put("time_nothing_out", Timeouts, "_timed_out", lambda _: [], REST)
FAULTS.put("keep_pending_offsets", PendingOffsets, "end", lambda *_: [], REPLAYED, FETCHED)
FAULTS.put("read_up_to_the_high_watermark", Log, "last_stable_offset", lambda _, high_watermark: high_watermark, STABLE)
FAULTS.put("forget_who_aborted", Segment, "append_aborted", nothing, READ)
FAULTS.put("restore_no_markers", producer_restore, "_replayed_markers", lambda *_: [], STABLE)
FAULTS.put("settle_at_once", Transactions, "require_settled", nothing, MISTAKE, TABLE, SUPERSEDED, first=40)
FAULTS.put("write_no_marker_again", Markers, "_write_again", lambda *_: CoordinatorResult((), None), REST)
FAULTS.put("take_any_marker", ProducerStates, "check_marker", nothing, SAME, first=80)
FAULTS.put("know_no_duplicates", producer_state, "_duplicate", nothing, IN_ORDER)
FAULTS.put("wait_for_deleted_topics", markers, "_NOT_NEEDED", frozenset(), REST)
FAULTS.put("forget_who_is_in_a_transaction", timeouts, "IDLE", frozenset(TransactionState), TABLE, first=30)
FAULTS.put("use_up_epochs", operations, "is_exhausted", lambda _: False, "producer ids and epochs are given once")
FAULTS.put("tell_of_no_pending_offsets", offset_fetch, "_with_unstable", lambda answer, _: answer, FETCHED, first=25)
FAULTS.put("forget_no_partition_of_a_session", FetchPartitions, "forget", nothing, FOUND)
FAULTS.put("tell_of_no_aborted_transactions", Log, "aborted_in", lambda *_: [], READ)
FAULTS.put("let_any_member_commit", ClassicGroup, "validate_offset_commit", lambda *_, **__: ErrorCode.NONE, MEMBERS)
FAULTS.wrap(
    "go_on_from_unstable_offsets",
    requests,
    "fetch",
    lambda fetch, *arguments, require_stable: fetch(*arguments, require_stable=False),
    "each input is consumed once",
    first=100,
)
# A mended fault: an EndTxn that waited for a change under way came after its repetition, and ended the next transaction.
FAULTS.wrap(
    "let_the_end_of_a_transaction_wait",
    end_txn,
    "handle",
    lambda handle, services, *arguments: handle(
        SimpleNamespace(transactions=SimpleNamespace(runtime=services.transactions)), *arguments
    ),
    SUPERSEDED,
    first=3493,
)
FAULTS.put("remember_one_batch", producer_state, "BATCHES_KEPT", 1, IN_ORDER, first=35)
FAULTS.put(
    "keep_what_could_not_be_written",
    SnapshotRegistry,
    "roll_back",
    nothing,
    *(MISTAKE, TABLE, REPLAYED, REST, SUPERSEDED),
    first=25,
)
