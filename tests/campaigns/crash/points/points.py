"""The list of crash points: every step between a client's request and the record that completes its transaction.

A point has the place where the broker dies first, and the places where it dies again after a restart. The checks after the last
restart are the same for all points (``run``).

Most points come in families: a write to a log is about to begin, is torn in the middle, or is complete but unacknowledged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from odradek.coordinator.transaction.states import TransactionState as State
from odradek.protocol.api_keys import ApiKey
from tests.campaigns.crash.points.matching import (
    answering,
    asked_for,
    beginning_segment,
    creating,
    marking,
    of_file,
    of_offsets,
    of_path,
    of_state,
    of_writer,
    settling,
)
from tests.campaigns.crash.points.places import FILE_APPEND, Moment, Place
from tests.campaigns.crash.points.producer import TV1, TV2
from tests.campaigns.crash.points.scenario import ABORTS, ENDS, STOPS, TAKE_OVERS, TIMEOUTS, WRITES, Scenario, of_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BEFORE, MIDDLE, AFTER = Moment.BEFORE, Moment.MIDDLE, Moment.AFTER
# The bytes of a batch that reach the disk: one, half a header, the header and a little, all but one.
CUTS = (1, 30, 66, -1)
ONE_CUT = (30,)

_SHARD = "odradek.coordinator.transaction.transaction_shard:TransactionShard."
_TRANSACTIONS = "odradek.coordinator.transaction.transactions:Transactions."
_MARKERS = "odradek.coordinator.transaction.markers:"
_COORDINATOR = "odradek.broker.coordination.transaction_coordinator:TransactionCoordinator."
_CONTROLLER = "odradek.controller.cluster.lone_controller:LoneController."
_OFFSETS = "odradek.broker.api.txn_offset_commit:commit_offsets_in_transaction"
_COORDINATOR_LOG = "odradek.broker.coordination.coordinator_logs:PartitionLog."
_WRITER = "odradek.storage.log.log_writer:LogWriter."
_PARTITION = "odradek.broker.replica.partitions:Partition."
_SEGMENT = "odradek.storage.log.segment:Segment."
_SNAPSHOTS = "odradek.storage.log.producer_restore:ProducerSnapshots."
_FILE = "odradek.storage.filesystem:RealFile."
_FILES = "odradek.storage.filesystem:RealFileSystem."
_ANSWER = "odradek.broker.network.dispatch:_encode"
_REQUEST = "odradek.broker.network.dispatch:Dispatcher.dispatch"


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """A point: ``what`` is going on, ``places`` where the broker dies, first and again, and the scenarios that reach them.

    ``is_new``: the transactional id did not exist before. ``is_exhausted``: its epochs are used up, and it gets another
    producer id by InitProducerId (TV1) or by EndTxn (TV2). ``is_first``: there was no transaction before.
    """

    name: str
    what: str
    places: tuple[Place, ...]
    scenarios: tuple[Scenario, ...] = WRITES
    is_new: bool = False
    is_exhausted: bool = False
    is_first: bool = False


def _at(name: str, what: str, place: Place, scenarios: tuple[Scenario, ...] = WRITES) -> CrashPoint:
    return CrashPoint(name, what, (place,), scenarios)


def _of_write(
    name: str,
    what: str,
    when: Callable[..., bool],
    scenarios: tuple[Scenario, ...] = WRITES,
    *,
    call: int = 1,
    cuts: tuple[int, ...] = ONE_CUT,
) -> Iterator[CrashPoint]:
    """Around and in the middle of one write to a log."""
    yield _at(f"{name} not written", f"{what} is decided on", Place(FILE_APPEND, BEFORE, when, call), scenarios)
    for cut in cuts:
        place = Place(FILE_APPEND, MIDDLE, when, call, keep_bytes=cut)
        yield _at(f"{name} torn at {cut}", f"a part of {what} is in its log", place, scenarios)
    yield _at(f"{name} written", f"{what} is in its log, nobody knows yet", Place(FILE_APPEND, AFTER, when, call), scenarios)


def _answered(name: str, api_key: ApiKey, scenarios: tuple[Scenario, ...] = WRITES, call: int = 1) -> CrashPoint:
    place = Place(_ANSWER, BEFORE, answering(api_key), call)
    return _at(f"{name} not answered", f"{api_key.name} is done, its answer is not sent", place, scenarios)


def _first() -> Iterator[CrashPoint]:
    """The topics of the coordinators are created."""
    metadata = of_file("__cluster_metadata")
    creates = "odradek.storage.directories.log_manager:LogManager.create"
    for name, what, place in (
        ("topic torn", "a part of __transaction_state's record is there", Place(FILE_APPEND, MIDDLE, metadata, keep_bytes=66)),
        ("topic written", "__transaction_state is recorded, and not there", Place(FILE_APPEND, AFTER, metadata)),
        (
            "topic half there",
            "a partition of __transaction_state is there",
            Place(creates, AFTER, creating("__transaction_state")),
        ),
        (
            "offsets half there",
            "a partition of __consumer_offsets is there",
            Place(creates, AFTER, creating("__consumer_offsets")),
        ),
        ("Empty written", "there is an Empty in a new topic, nobody knows yet", Place(FILE_APPEND, AFTER, of_state(State.EMPTY))),
    ):
        yield CrashPoint(f"first: {name}", what, (place,), is_first=True)


def _init() -> Iterator[CrashPoint]:
    block = Place(FILE_APPEND, MIDDLE, of_file("__cluster_metadata"), keep_bytes=30)
    takes_block = _CONTROLLER + "allocate_producer_id_block"
    new = [
        ("producer ids asked for", "no block of producer ids is taken yet", Place(takes_block, BEFORE)),
        ("producer ids torn", "a part of the block's record is there", block),
        ("producer ids taken", "a block of producer ids is written, none is used", Place(takes_block, AFTER)),
        (
            "new id torn",
            "a part of the first Empty is in its log",
            Place(FILE_APPEND, MIDDLE, of_state(State.EMPTY), keep_bytes=66),
        ),
        ("new id written", "the first Empty is in its log, nobody knows yet", Place(FILE_APPEND, AFTER, of_state(State.EMPTY))),
    ]
    for name, what, place in new:
        yield CrashPoint(f"init: {name}", what, (place,), is_new=True)
    yield _at("init: decided", "the next epoch is chosen", Place(_SHARD + "init_producer_id", AFTER))
    yield from _of_write("init: Empty", "Empty", of_state(State.EMPTY))
    yield _answered("init:", ApiKey.INIT_PRODUCER_ID)
    asks = asked_for(ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.PRODUCE)
    yield _at("init: answered", "the producer has its epoch, and asks for more", Place(_REQUEST, BEFORE, asks))


def _add_partitions() -> Iterator[CrashPoint]:
    ongoing = of_state(State.ONGOING)
    yield _at("partitions: decided", "the transaction is to begin", Place(_SHARD + "add_partitions", AFTER))
    yield from _of_write("partitions: Ongoing", "the first Ongoing", ongoing, cuts=CUTS)
    place = Place(_TRANSACTIONS + "settle", BEFORE, settling(State.ONGOING))
    yield _at("partitions: pending", "Ongoing is in the log for good, not settled", place)
    tv1, tv2 = of_kind(TV1, WRITES), of_kind(TV2, WRITES)
    yield _answered("partitions:", ApiKey.ADD_PARTITIONS_TO_TXN, tv1)
    place = Place(_REQUEST, BEFORE, asked_for(ApiKey.PRODUCE))
    yield _at("partitions: answered", "the transaction is open, nothing is produced", place, tv1)
    # The second Produce adds partitions; the offsets add their group's partition.
    yield from _of_write("partitions: more of Ongoing", "Ongoing with more partitions", ongoing, tv2, call=2)
    yield from _of_write("offsets: Ongoing", "Ongoing with the group's partition", ongoing, tv1, call=2)
    yield from _of_write("offsets: Ongoing with TxnOffsetCommit", "Ongoing with the group's partition", ongoing, tv2, call=3)
    yield _answered("offsets: adding", ApiKey.ADD_OFFSETS_TO_TXN, tv1)


def _produce() -> Iterator[CrashPoint]:
    yield _at("produce: verified", "the coordinator knows of the partition", Place(_PARTITION + "append", BEFORE))
    yield from _of_write("produce: batch", "the transaction's first batch", of_file("Debit-0"), cuts=CUTS)
    noted = "odradek.storage.log.producer_state:ProducerStates.record"
    yield _at("produce: not noted", "the batch is in the log, its producer is not known", Place(noted, BEFORE))
    yield _at("produce: one of two", "one partition has its batch, the other does not", Place(_PARTITION + "append", AFTER))
    yield _answered("produce:", ApiKey.PRODUCE)
    torn = Place(FILE_APPEND, MIDDLE, of_file("credit-1"), call=2, keep_bytes=66)
    yield _at("produce: later batch torn", "a part of a batch in an open transaction is there", torn)
    yield _answered("produce: last", ApiKey.PRODUCE, call=3)


def _roll() -> Iterator[CrashPoint]:
    yield _at("roll: due", "a segment ends within the transaction", Place(_WRITER + "roll", BEFORE, of_writer("Debit", 1)))
    snapshot = _SNAPSHOTS + "take"
    yield _at("roll: no snapshot", "the new segment is there, its snapshot is not", Place(snapshot, BEFORE))
    renamed = Place("os:replace", BEFORE, of_path("Debit-1/", ".snapshot.tmp"))
    yield _at("roll: snapshot unnamed", "the snapshot is written, and has no name yet", renamed)
    begun = Place(_SEGMENT + "append", BEFORE, beginning_segment("Debit-1", is_marker=False))
    yield _at("roll: empty segment", "snapshot and segment are there, the batch is not", begun)
    again = Place(snapshot, AFTER, call=2)
    yield _at("roll: open transaction in snapshot", "a snapshot has the transaction as open", again)
    torn = Place(FILE_APPEND, MIDDLE, of_file("Debit-1"), call=2, keep_bytes=30)
    yield _at("roll: torn behind snapshot", "the batch behind the snapshot is torn", torn)
    marker = Place(_SEGMENT + "append", BEFORE, beginning_segment("Debit-0", is_marker=True))
    yield _at("roll: for a marker", "a segment was begun for a marker, which is not there", marker)


def _offsets() -> Iterator[CrashPoint]:
    yield _at("offsets: added", "the group's partition is in, no offset is decided on", Place(_OFFSETS, BEFORE))
    yield _at("offsets: decided", "the offsets are to be pending", Place(_OFFSETS, AFTER))
    yield from _of_write("offsets: commit", "the pending offsets", of_file("__consumer_offsets"), cuts=CUTS)
    yield _at("offsets: pending", "the offsets are pending for good", Place(_COORDINATOR_LOG + "append", AFTER, of_offsets))
    yield _answered("offsets:", ApiKey.TXN_OFFSET_COMMIT)
    yield _at("offsets: answered", "EndTxn has come", Place(_REQUEST, BEFORE, asked_for(ApiKey.END_TXN)))


def _timeout() -> Iterator[CrashPoint]:
    fences = "odradek.coordinator.transaction.timeouts:fence"
    yield _at("timeout: due", "the transaction is to be aborted", Place(fences, BEFORE), TIMEOUTS)
    yield _at("timeout: decided", "the producer is fenced, PrepareAbort is not written", Place(fences, AFTER), TIMEOUTS)
    yield from _of_write("timeout: Prepare", "PrepareAbort", of_state(State.PREPARE_ABORT), TIMEOUTS)
    yield _at("timeout: one marker", "one partition has its marker", Place(_COORDINATOR + "write_marker", AFTER), TIMEOUTS)
    yield from _of_write("timeout: Complete", "CompleteAbort", of_state(State.COMPLETE_ABORT), TIMEOUTS)


def _take_over() -> Iterator[CrashPoint]:
    fences = "odradek.coordinator.transaction.operations:fence"
    yield _at("take over: asked", "a new instance finds an open transaction", Place(fences, BEFORE), TAKE_OVERS)
    yield _at("take over: decided", "the producer is fenced, PrepareAbort is not written", Place(fences, AFTER), TAKE_OVERS)
    yield from _of_write("take over: Prepare", "PrepareAbort", of_state(State.PREPARE_ABORT), TAKE_OVERS)
    yield _at("take over: one marker", "one partition has its marker", Place(_COORDINATOR + "write_marker", AFTER), TAKE_OVERS)
    yield from _of_write("take over: Complete", "CompleteAbort", of_state(State.COMPLETE_ABORT), TAKE_OVERS)
    yield _answered("take over: fence", ApiKey.INIT_PRODUCER_ID, TAKE_OVERS, call=2)
    yield from _of_write("take over: Empty", "Empty with the new instance's epoch", of_state(State.EMPTY), TAKE_OVERS, call=2)


def _stop() -> Iterator[CrashPoint]:
    """Killed during a graceful stop with the transaction open."""
    yield _at(
        "stop: asked",
        "nothing is closed yet",
        Place("odradek.storage.directories.log_manager:LogManager.shutdown", BEFORE),
        STOPS,
    )
    yield _at("stop: one snapshot", "a snapshot is written, others are not", Place(_SNAPSHOTS + "take", AFTER), STOPS)
    marker = Place(_FILES + "write_atomic", BEFORE, of_path("", ".kafka_cleanshutdown"))
    yield _at("stop: not clean", "all is closed, the sign of a clean stop is not there", marker, STOPS)


def _end() -> Iterator[CrashPoint]:
    prepares = (State.PREPARE_COMMIT, State.PREPARE_ABORT)
    yield _at("end: asked", "the shard is about to decide", Place(_SHARD + "end_txn", BEFORE))
    yield _at("end: decided", "Prepare* is decided on, not replayed", Place(_SHARD + "end_txn", AFTER))
    yield from _of_write("end: Prepare", "Prepare*", of_state(*prepares), cuts=CUTS)
    yield _at(
        "end: pending", "Prepare* is there for good, not settled", Place(_TRANSACTIONS + "settle", BEFORE, settling(*prepares))
    )
    yield _answered("end:", ApiKey.END_TXN)
    yield _at("end: no marker yet", "the producer was told, markers are to be begun", Place(_MARKERS + "Markers.write", BEFORE))


def _markers() -> Iterator[CrashPoint]:
    writes = _COORDINATOR + "write_marker"
    yield _at("markers: none", "the first marker is to be written", Place(writes, BEFORE))
    yield _at("markers: one", "one partition has its marker", Place(writes, AFTER))
    of_group = marking("__consumer_offsets")
    yield _at(
        "markers: not the group's", "a topic has its markers, the group's offsets are pending", Place(writes, BEFORE, of_group)
    )
    yield _at("markers: the group's", "the group has its marker, a topic has none", Place(writes, AFTER, of_group))
    yield _at("markers: all", "the last marker is written", Place(writes, AFTER, call=5))
    for topic, cuts in (("Debit-0", ONE_CUT), ("credit-0", CUTS), ("__consumer_offsets", CUTS)):
        is_marker = of_file(topic, is_marker=True)
        yield from _of_write(f"markers: on {topic}", f"the marker on {topic}", is_marker, cuts=cuts)
    group = _COORDINATOR_LOG + "append_marker"
    yield _at("markers: group replayed", "the offsets are committed in memory, not in the log", Place(group, BEFORE))
    yield _at("markers: group appended", "the offsets are committed, nobody was told", Place(group, AFTER))
    index = of_file("", ".txnindex")
    indexed = _SEGMENT + "append_aborted"
    yield _at("markers: not indexed", "an abort marker is written, its index entry is not", Place(indexed, BEFORE), ABORTS)
    yield _at(
        "markers: index torn", "a part of the index entry is there", Place(FILE_APPEND, MIDDLE, index, keep_bytes=20), ABORTS
    )
    yield _at("markers: indexed", "the abort's index entry is there", Place(indexed, AFTER), ABORTS)


def _complete() -> Iterator[CrashPoint]:
    completes = (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
    yield _at("complete: undecided", "all markers are written", Place(_MARKERS + "completed", BEFORE))
    yield from _of_write("complete: Complete", "Complete*", of_state(*completes), cuts=CUTS)
    settles = Place(_TRANSACTIONS + "settle", BEFORE, settling(*completes))
    yield _at("complete: pending", "Complete* is there for good, not settled", settles)
    asks = Place(_REQUEST, BEFORE, asked_for(ApiKey.API_VERSIONS))
    yield _at("complete: settled", "the producer asks for something else", asks)


def _load() -> Iterator[CrashPoint]:
    """Killed with one marker of five written, and again while the others are being written."""
    one = Place(_COORDINATOR + "write_marker", AFTER)

    def again(name: str, what: str, place: Place, first: Place = one, scenarios: tuple[Scenario, ...] = WRITES) -> CrashPoint:
        return CrashPoint(f"load: {name}", what, (first, replace(place, at_start=True)), scenarios)

    writes = _COORDINATOR + "write_marker"
    complete = of_state(State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
    marker = of_file("credit-0", is_marker=True)
    yield again(
        "before resuming", "Prepare* has been read again, no marker is resumed", Place(_MARKERS + "Markers.resume", BEFORE)
    )
    yield again("resuming", "the first marker is written a second time", Place(writes, AFTER))
    yield again("half resumed", "the group has its marker", Place(writes, AFTER, marking("__consumer_offsets")))
    yield again("marker torn", "a marker is torn when markers are resumed", Place(FILE_APPEND, MIDDLE, marker, keep_bytes=66))
    yield again("all resumed", "all markers are written, some twice", Place(_MARKERS + "completed", BEFORE))
    yield again("Complete torn", "Complete* is torn after a load", Place(FILE_APPEND, MIDDLE, complete, keep_bytes=66))
    yield again("Complete written", "Complete* is written after a load", Place(FILE_APPEND, AFTER, complete))
    torn = Place(FILE_APPEND, MIDDLE, marker, keep_bytes=66)
    cut = Place(_SEGMENT + "truncate", AFTER, of_path("credit-0/"))
    yield again("torn tail cut", "a torn marker is cut off, the log is not loaded yet", cut, torn)
    prepare = Place(FILE_APPEND, MIDDLE, of_state(State.PREPARE_COMMIT, State.PREPARE_ABORT), keep_bytes=66)
    cut = Place(_SEGMENT + "truncate", AFTER, of_path("__transaction_state"))
    yield again("torn Prepare cut", "a torn Prepare* is cut off", cut, prepare)
    torn = Place(FILE_APPEND, MIDDLE, of_file("", ".txnindex"), keep_bytes=20)
    cut = Place(_FILE + "truncate", AFTER, of_file("", ".txnindex"))
    yield again("index cut", "a torn index of aborted transactions is cut, not yet written again", cut, torn, ABORTS)
    removed = Place(_FILES + "remove", AFTER, of_path("", ".snapshot"))
    # After a graceful stop one of these is not needed.
    tv1 = of_kind(TV1, ENDS)
    yield again("snapshot removed", "a snapshot that is not needed is removed, others are not", removed, scenarios=tv1)


def _rotate() -> Iterator[CrashPoint]:
    """The producer's epochs are used up, and it gets a new producer id."""
    takes_block = _CONTROLLER + "allocate_producer_id_block"
    empty, prepare = of_state(State.EMPTY), of_state(State.PREPARE_COMMIT, State.PREPARE_ABORT)
    complete = of_state(State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
    tv1, tv2 = of_kind(TV1, WRITES), of_kind(TV2, ENDS)
    for name, what, place, scenarios in (
        ("id taken", "a block of producer ids is written, none is used", Place(takes_block, AFTER), tv1 + tv2),
        ("Empty torn", "a part of Empty with a new id is there", Place(FILE_APPEND, MIDDLE, empty, keep_bytes=66), tv1),
        ("Empty written", "Empty with a new id is in its log, nobody knows yet", Place(FILE_APPEND, AFTER, empty), tv1),
        ("Prepare torn", "a part of Prepare* with a new id is there", Place(FILE_APPEND, MIDDLE, prepare, keep_bytes=66), tv2),
        ("Prepare written", "Prepare* with a new id is in its log, nobody knows yet", Place(FILE_APPEND, AFTER, prepare), tv2),
        ("one marker", "a marker of the last epoch is written", Place(_COORDINATOR + "write_marker", AFTER), tv2),
        ("Complete torn", "a part of Complete* of the new id is there", Place(FILE_APPEND, MIDDLE, complete, keep_bytes=66), tv2),
        ("Complete written", "Complete* of the new id is in its log", Place(FILE_APPEND, AFTER, complete), tv2),
        (
            "not answered",
            "the new id is in use, its producer does not know",
            Place(_ANSWER, BEFORE, answering(ApiKey.END_TXN)),
            tv2,
        ),
    ):
        yield CrashPoint(f"new producer id: {name}", what, (place,), scenarios, is_exhausted=True)


def _both_ways(point: CrashPoint) -> CrashPoint:
    """From EndTxn on, commits and aborts are separate scenarios."""
    return replace(point, scenarios=ENDS) if point.scenarios is WRITES else point


_WRITING = (_first, _init, _add_partitions, _produce, _roll, _offsets, _timeout, _take_over, _stop)
_ENDING = (_end, _markers, _complete, _rotate, _load)
POINTS: tuple[CrashPoint, ...] = (
    *(point for step in _WRITING for point in step()),
    *(_both_ways(point) for step in _ENDING for point in step()),
)
BY_NAME = {point.name: point for point in POINTS}
