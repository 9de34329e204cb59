"""Fifty histories of transactions, and that the simulation would notice. The campaign simulate runs more."""

import pytest

from odradek.broker.coordination.transaction_coordinator import TransactionCoordinator
from odradek.broker.replica.fetch_partitions import FetchPartition, FetchPartitions
from odradek.broker.replica.partition import Partition
from odradek.coordinator.group import offset_fetch
from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.pending_offsets import PendingOffsets
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.coordinator.runtime.timeline import SnapshotRegistry
from odradek.coordinator.transaction import add_partitions, end_txn, init_producer_id, markers, timeouts
from odradek.coordinator.transaction.markers import Markers
from odradek.coordinator.transaction.states import TransactionState
from odradek.coordinator.transaction.timeouts import Timeouts
from odradek.coordinator.transaction.transactions import Transactions
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage import producer_restore, producer_state
from odradek.storage.log import Log
from odradek.storage.producer_snapshot import ProducerSnapshots
from odradek.storage.producer_state import ProducerStates
from odradek.storage.segment import Segment
from odradek.timing.reply import Reply
from tests.campaigns.simulation import runner
from tests.campaigns.simulation.transactions import histories, requests
from tests.campaigns.simulation.violation import Violation

SEEDS_A_TEST = 25
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
EPOCHS = "producer ids and epochs are given once"
IDENTITY = "producer id and epoch are one process's"
MISTAKE = "the broker makes no mistake"
TABLE = "transactions follow the table"
IN_ORDER = "who sends in order is taken in order"
ORDER = "transactions are read in the order in which they were made"
TWICE = "nothing is appended twice"
MEMBERS = "a fenced member commits nothing"
ONCE = "each input is consumed once"


def let_anybody_be_the_producer(monkeypatch):
    monkeypatch.setattr(add_partitions, "check_producer", lambda *_: None)
    monkeypatch.setattr(end_txn, "check_producer", lambda *_: None)


def take_batches_unverified(monkeypatch):
    monkeypatch.setattr(ProducerStates, "needs_verification", lambda *_: False)


def leave_out_a_marker(monkeypatch):
    begin = Markers.begin

    def begin_with_fewer(self, transactional_id, value):
        fewer = frozenset(sorted(value.partitions)[:-1]) if len(value.partitions) > 1 else value.partitions
        begin(self, transactional_id, value._replace(partitions=fewer))

    monkeypatch.setattr(Markers, "begin", begin_with_fewer)


def complete_while_markers_wait(monkeypatch):
    monkeypatch.setattr(markers, "_NOT_NEEDED", frozenset(ErrorCode))


def write_markers_of_both_kinds(monkeypatch):
    append = Partition.append_marker

    def append_marker(self, marker, now_ms):
        return append(self, marker._replace(is_commit=marker.is_commit or self.index == 1), now_ms)

    monkeypatch.setattr(Partition, "append_marker", append_marker)


def end_nothing_after_a_load(monkeypatch):
    monkeypatch.setattr(Markers, "resume", lambda _: None)


def time_nothing_out(monkeypatch):
    monkeypatch.setattr(Timeouts, "_timed_out", lambda _: [])


def keep_pending_offsets(monkeypatch):
    monkeypatch.setattr(PendingOffsets, "end", lambda *_: [])


def commit_offsets_that_are_aborted(monkeypatch):
    replay_marker = "odradek.coordinator.group.offsets.CommittedOffsets.replay_marker"

    def replay(self, producer_id, *, is_commit):
        for key, at_offset, value in self.pending.end(producer_id):
            self.replay(key, value, at_offset)

    monkeypatch.setattr(replay_marker, replay)


def read_up_to_the_high_watermark(monkeypatch):
    monkeypatch.setattr(Log, "last_stable_offset", lambda _, high_watermark: high_watermark)


def forget_who_aborted(monkeypatch):
    monkeypatch.setattr(Segment, "append_aborted", lambda *_: None)


def restore_no_markers(monkeypatch):
    monkeypatch.setattr(producer_restore, "_replayed_markers", lambda *_: [])


def settle_at_once(monkeypatch):
    monkeypatch.setattr(Transactions, "require_settled", lambda *_: None)


def initialise_without_a_new_epoch(monkeypatch):
    initialized = init_producer_id.initialized

    def initialize(current, timeout_ms, now_ms, *, epoch, last_epoch, producer_id=None):
        kept = max(epoch - 1, 0) if producer_id is None else epoch
        return initialized(current, timeout_ms, now_ms, epoch=kept, last_epoch=last_epoch, producer_id=producer_id)

    monkeypatch.setattr(init_producer_id, "initialized", initialize)


def write_no_marker_again(monkeypatch):
    monkeypatch.setattr(Markers, "_write_again", lambda *_: CoordinatorResult((), None))


def take_any_marker(monkeypatch):
    monkeypatch.setattr(ProducerStates, "check_marker", lambda *_: None)


def know_no_duplicates(monkeypatch):
    monkeypatch.setattr(producer_state, "_duplicate", lambda *_: None)


def wait_for_deleted_topics(monkeypatch):
    monkeypatch.setattr(markers, "_NOT_NEEDED", frozenset())


def forget_who_is_in_a_transaction(monkeypatch):
    monkeypatch.setattr(timeouts, "IDLE", frozenset(TransactionState))


def use_up_epochs(monkeypatch):
    monkeypatch.setattr(init_producer_id, "is_exhausted", lambda _: False)


def restore_no_open_transactions(monkeypatch):
    load = ProducerSnapshots.load

    def load_idle(self, offset):
        producers = load(self, offset)
        if producers is not None:
            producers.open_transactions.clear()
            for producer in producers.by_id.values():
                producer.transaction_start = -1
        return producers

    monkeypatch.setattr(ProducerSnapshots, "load", load_idle)


def append_before_partitions_are_added(monkeypatch):
    add = TransactionCoordinator.add_partitions

    def add_partitions(self, *arguments):
        self._services.call_soon(lambda: add(self, *arguments))
        reply = Reply()
        reply.complete(ErrorCode.NONE)
        return reply

    monkeypatch.setattr(TransactionCoordinator, "add_partitions", add_partitions)


def keep_what_could_not_be_written(monkeypatch):
    monkeypatch.setattr(SnapshotRegistry, "roll_back", lambda *_: None)


def tell_of_no_pending_offsets(monkeypatch):
    monkeypatch.setattr(offset_fetch, "_with_unstable", lambda answer, _pending: answer)


def keep_the_first_offsets_of_a_session(monkeypatch):
    ask = FetchPartition.ask

    def ask_once(self, asked):
        if not hasattr(self, "fetch_offset"):
            ask(self, asked)

    monkeypatch.setattr(FetchPartition, "ask", ask_once)


def forget_no_partition_of_a_session(monkeypatch):
    monkeypatch.setattr(FetchPartitions, "forget", lambda *_: None)


def tell_of_no_aborted_transactions(monkeypatch):
    monkeypatch.setattr(Log, "aborted_in", lambda *_: [])


def let_any_generation_commit(monkeypatch):
    validate = ClassicGroup.validate_offset_commit

    def validate_member_only(self, member_id, group_instance_id, generation, **request):
        known = generation if generation < 0 else self.generation
        return validate(self, member_id, group_instance_id, known, **request)

    monkeypatch.setattr(ClassicGroup, "validate_offset_commit", validate_member_only)


def let_any_member_commit(monkeypatch):
    monkeypatch.setattr(ClassicGroup, "validate_offset_commit", lambda *_, **__: ErrorCode.NONE)


def remember_one_batch(monkeypatch):
    monkeypatch.setattr(producer_state, "BATCHES_KEPT", 1)


def take_any_sequence(monkeypatch):
    check = ProducerStates.check

    def take(self, header):
        try:
            return check(self, header)
        except KafkaError as error:
            if error.code is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                raise
            return None

    monkeypatch.setattr(ProducerStates, "check", take)


def go_on_from_unstable_offsets(monkeypatch):
    fetch = requests.fetch
    monkeypatch.setattr(requests, "fetch", lambda *arguments, require_stable: fetch(*arguments, require_stable=False))


# Faults that few histories come to: where the search begins, not far before the first of these.
RARE = {
    settle_at_once: 40,
    take_any_marker: 80,
    forget_who_is_in_a_transaction: 30,
    restore_no_open_transactions: 40,
    tell_of_no_pending_offsets: 25,
    go_on_from_unstable_offsets: 100,
    remember_one_batch: 35,
    take_any_sequence: 40,
    keep_what_could_not_be_written: 25,
}


@pytest.mark.parametrize("first", range(0, 50, SEEDS_A_TEST))
def test_no_history_breaks_an_invariant(first):
    failures, _ = runner.run_many(histories.SIMULATION, first, SEEDS_A_TEST)

    assert not failures, "\n".join(failures)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("spoil", "invariants"),
    [
        (let_anybody_be_the_producer, {FENCED, IDENTITY}),
        (take_batches_unverified, {OPEN, FENCED}),
        (leave_out_a_marker, {COMPLETE}),
        (complete_while_markers_wait, {COMPLETE}),
        (write_markers_of_both_kinds, {SAME}),
        (end_nothing_after_a_load, {REST, SUPERSEDED}),
        (time_nothing_out, {REST}),
        (keep_pending_offsets, {REPLAYED, FETCHED}),
        (commit_offsets_that_are_aborted, {REPLAYED, FETCHED}),
        (read_up_to_the_high_watermark, {STABLE}),
        (forget_who_aborted, {READ}),
        (restore_no_markers, {STABLE}),
        (settle_at_once, {MISTAKE, TABLE, SUPERSEDED}),
        (initialise_without_a_new_epoch, {IDENTITY}),
        (write_no_marker_again, {REST}),
        (take_any_marker, {SAME}),
        (know_no_duplicates, {IN_ORDER}),
        (wait_for_deleted_topics, {REST}),
        (forget_who_is_in_a_transaction, {TABLE}),
        (use_up_epochs, {EPOCHS}),
        (restore_no_open_transactions, {STABLE}),
        (append_before_partitions_are_added, {OPEN}),
        (tell_of_no_pending_offsets, {FETCHED}),
        (keep_the_first_offsets_of_a_session, {FOUND, READ}),
        (forget_no_partition_of_a_session, {FOUND}),
        (tell_of_no_aborted_transactions, {READ}),
        (let_any_generation_commit, {MEMBERS}),
        (let_any_member_commit, {MEMBERS}),
        (go_on_from_unstable_offsets, {ONCE}),
        (remember_one_batch, {IN_ORDER}),
        (take_any_sequence, {ORDER, TWICE}),
        (keep_what_could_not_be_written, {MISTAKE, TABLE, REPLAYED, REST, SUPERSEDED}),
    ],
)
def test_a_fault_of_the_broker_or_of_a_client_is_found(spoil, invariants, monkeypatch):
    spoil(monkeypatch)

    first = RARE.get(spoil, 0)
    errors = (histories.run(seed)[1] for seed in range(first, first + 200))
    found = next(error for error in errors if error is not None)

    assert isinstance(found, Violation), repr(found)
    assert found.invariant in invariants, found
