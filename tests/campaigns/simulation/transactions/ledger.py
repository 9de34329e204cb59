"""The producers' records in each transaction, the acknowledged ones among them, and the requested and confirmed ends.

A value names its place: ``<transaction>:<number>``. Each record, and each offset, is sent in one transaction only.

requested   confirmed   a read_committed consumer reads commit      committed   all of it, once, in order commit      nothing
all of it or nothing, the same on all partitions and for offsets abort, or nothing       nothing

What ``__transaction_state`` says, record by record as it is appended: whose producer ids, which epochs, which transactions,
how each ended; and whether each record may follow on the one before.

The rules are written down here once more, from Kafka's TransactionMetadata and KIP-890: the product's are part of what is
checked.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING
from uuid import UUID

from odradek.protocol.coordinator_records import TransactionLogKey, TransactionLogValue, decode_transaction_key, decode_value
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.campaigns.simulation.transactions.witness import SeenOffsets


EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)
PREPARED = (PREPARE_COMMIT, PREPARE_ABORT)
COMPLETE = (COMPLETE_COMMIT, COMPLETE_ABORT)

_FOLLOWS = {
    EMPTY: {EMPTY, ONGOING, PREPARE_ABORT},
    ONGOING: {ONGOING, *PREPARED},
    PREPARE_COMMIT: {COMPLETE_COMMIT},
    PREPARE_ABORT: {COMPLETE_ABORT},
    COMPLETE_COMMIT: {EMPTY, ONGOING, PREPARE_ABORT},
    COMPLETE_ABORT: {EMPTY, ONGOING, PREPARE_ABORT},
}
_LAST_EPOCH = 32_766
_BUMPING_VERSION = 2

_TABLE = "transactions follow the table"
_EPOCHS = "producer ids and epochs are given once"
_MARKERS = "a transaction's fate is the same on all its partitions"


class Fate:
    """The decision on one transaction. ``missing`` are the partitions that have no marker yet.

    ``coordinator_epoch`` is that of the last marker written for it.
    """

    __slots__ = (
        "coordinator_epoch",
        "epoch",
        "is_commit",
        "marker_epoch",
        "missing",
        "partitions",
        "producer_id",
        "transactional_id",
        "version",
    )

    def __init__(self, transactional_id: str, before: TransactionLogValue, value: TransactionLogValue) -> None:
        self.transactional_id = transactional_id
        self.producer_id = value.producer_id
        self.epoch = before.producer_epoch
        self.marker_epoch = value.producer_epoch
        self.is_commit = value.status == PREPARE_COMMIT
        self.version = value.client_transaction_version
        self.partitions = value.partitions
        self.missing = set(value.partitions)
        self.coordinator_epoch = -1


class Fates:
    """``latest`` is each transactional id's last record, ``of_producer`` each producer id's last fate. Raises Violation."""

    def __init__(self, *, may_lag: bool) -> None:
        """``may_lag``: of what is written some may not be there for good yet."""
        self._may_lag = may_lag
        self.latest: dict[str, TransactionLogValue] = {}
        self.owners: dict[int, str] = {}
        self.of_producer: dict[int, Fate] = {}
        self.all: list[Fate] = []
        self._seeds: dict[str, TransactionLogValue] = {}
        # (producer id, marker's epoch) of all there were.
        self._decided: set[tuple[int, int]] = set()

    def note_record(self, key_bytes: bytes, value_bytes: bytes | None) -> Fate | None:
        """The next record of ``__transaction_state``; the fate that this one completes."""
        key = decode_transaction_key(key_bytes)
        if not isinstance(key, TransactionLogKey):
            raise Violation(_TABLE, f"a record of {key}")
        transactional_id = key.transactional_id
        value = decode_value(key, value_bytes)
        before = self.latest.get(transactional_id)
        if value is None:
            self._note_tombstone(transactional_id)
            return None
        if not isinstance(value, TransactionLogValue):
            raise Violation(_TABLE, f"{value} is written for {transactional_id}")
        self._check_owner(transactional_id, value)
        if before is not None:
            self._check(transactional_id, before, value)
        elif value != self._seeds.get(transactional_id) and (value.status != EMPTY or value.producer_epoch):
            raise Violation(_TABLE, f"{transactional_id} begins with {value}")
        self.latest[transactional_id] = value
        if value.status in PREPARED and before is not None:
            fate = self.of_producer[value.producer_id] = Fate(transactional_id, before, value)
            self.all.append(fate)
            self._decided.add((value.producer_id, value.producer_epoch))
        if value.status in COMPLETE and before is not None:
            return self.of_producer[before.producer_id]
        return None

    def seed(self, transactional_id: str, value: TransactionLogValue) -> None:
        """The state before the history began."""
        self._seeds[transactional_id] = value

    def _note_tombstone(self, transactional_id: str) -> None:
        before = self.latest.pop(transactional_id, None)
        if before is None or before.status in (ONGOING, *PREPARED):
            raise Violation(_TABLE, f"{transactional_id} is forgotten, and was {before}")

    def _check_owner(self, transactional_id: str, value: TransactionLogValue) -> None:
        for producer_id in (value.producer_id, value.next_producer_id):
            if producer_id >= 0 and self.owners.setdefault(producer_id, transactional_id) != transactional_id:
                what = f"{transactional_id} and {self.owners[producer_id]} have producer id {producer_id}"
                raise Violation(_EPOCHS, what)

    def _check(self, transactional_id: str, before: TransactionLogValue, value: TransactionLogValue) -> None:
        what = f"{transactional_id}: {before}, then {value}"
        if value.status not in _FOLLOWS[before.status]:
            raise Violation(_TABLE, what)
        if not _may_follow(before, value):
            raise Violation(_EPOCHS, what)
        if not _partitions_may_follow(before, value):
            raise Violation(_TABLE, what)

    def need_no_marker(self, partition: tuple[str, int]) -> None:
        """It is gone, or is there again, and nothing is open in it."""
        for fate in self.of_producer.values():
            fate.missing.discard(partition)

    def check_write(self, partition: tuple[str, int], producer_id: int, epoch: int, *, is_open_here: bool) -> None:
        """A producer's batch is appended to ``partition``. ``is_open_here``: after another of the same epoch, and no marker."""
        transactional_id = self.owners.get(producer_id)
        value = None if transactional_id is None else self.latest.get(transactional_id)
        what = f"{partition} takes a batch of producer {producer_id}, epoch {epoch}, while {transactional_id} is {value}"
        if value is None:
            raise Violation("each write belongs to an open transaction", what)
        is_current = value.producer_id == producer_id and value.producer_epoch == epoch
        if value.status == ONGOING and is_current and partition in value.partitions:
            return
        fate = self.of_producer.get(producer_id)
        # Its end is decided on, and has not reached this partition yet: what still comes shares it. And until the decision is
        # there for good, partitions that have had nothing yet are confirmed.
        is_ending = value.status in PREPARED and fate is not None and fate.epoch == epoch and partition in fate.missing
        if is_ending and (is_open_here or self._may_lag):
            return
        if value.producer_id != producer_id or epoch < value.producer_epoch:
            raise Violation("nothing of a fenced epoch is written", what)
        raise Violation("each write belongs to an open transaction", what)

    def check_marker(self, partition: tuple[str, int], producer_id: int, epoch: int, *, is_commit: bool, ends: bool) -> None:
        """A marker is appended to ``partition``; ``ends``: a transaction is open there."""
        fate = self.of_producer.get(producer_id)
        kind = "commit" if is_commit else "abort"
        what = f"{partition} gets a marker of producer {producer_id}, epoch {epoch}: {kind}"
        if fate is None or (producer_id, epoch) not in self._decided:
            raise Violation(_MARKERS, f"{what}; nothing was decided")
        if not ends and (partition not in fate.missing or epoch != fate.marker_epoch):
            # Repeated: it ends nothing.
            return
        decided = f"{what}; decided was {'commit' if fate.is_commit else 'abort'} at epoch {fate.marker_epoch}"
        if epoch != fate.marker_epoch or is_commit != fate.is_commit or partition not in fate.partitions:
            raise Violation(_MARKERS, f"{decided}, for {sorted(fate.partitions)}")
        if partition not in fate.missing:
            raise Violation(_MARKERS, f"{decided}, and that one is over here")
        fate.missing.discard(partition)

    def unsettled(self) -> Iterator[str]:
        """Transactional ids that are neither Empty nor Complete*."""
        for transactional_id, value in self.latest.items():
            if value.status in (ONGOING, *PREPARED):
                yield f"{transactional_id} is {value}"

    def is_superseded(self, transactional_id: str, producer_id: int, epoch: int) -> bool:
        """True if the log has a newer producer than this one."""
        value = self.latest.get(transactional_id)
        return value is None or value.producer_id != producer_id or value.producer_epoch > epoch


def _may_follow(before: TransactionLogValue, value: TransactionLogValue) -> bool:
    """Producer id and epoch."""
    is_same = value.producer_id == before.producer_id
    step = value.producer_epoch - before.producer_epoch
    if value.status == ONGOING:
        return is_same and step == 0
    if value.status in PREPARED:
        bumps = value.client_transaction_version >= _BUMPING_VERSION
        is_exhausted = bumps and before.producer_epoch >= _LAST_EPOCH
        return is_same and step == bumps and (value.next_producer_id >= 0) == is_exhausted
    if value.status in COMPLETE and before.next_producer_id >= 0:
        return (value.producer_id, value.producer_epoch) == (before.next_producer_id, 0)
    if value.status in COMPLETE:
        return is_same and step == 0
    if is_same:
        return step in (0, 1) and value.producer_epoch <= _LAST_EPOCH
    return value.producer_epoch == 0 and before.producer_epoch >= _LAST_EPOCH


def _partitions_may_follow(before: TransactionLogValue, value: TransactionLogValue) -> bool:
    was_open = before.status == ONGOING
    if value.status == ONGOING:
        return before.partitions < value.partitions if was_open else bool(value.partitions)
    if value.status in PREPARED:
        return value.partitions == before.partitions if was_open else not value.partitions
    return not value.partitions


# A partition from its creation to its deletion: topic id and index.
Incarnation = tuple[UUID, int]

_FATE = "a transaction's fate is the one that its producer was told"
_WHOLE = "a transaction is read whole or not at all"
_ORDER = "transactions are read in the order in which they were made"


class SentTransaction:
    """A transaction as its producer knows it."""

    __slots__ = ("acknowledged", "asked", "number", "offsets", "producer", "sent_count", "told", "transactional_id")

    def __init__(self, number: int, transactional_id: str, producer: str) -> None:
        self.number = number
        self.transactional_id = transactional_id
        self.producer = producer
        self.sent_count = 0
        self.acknowledged: dict[Incarnation, list[bytes]] = defaultdict(list)
        self.offsets: list[int] = []
        # Whether a commit was requested; None before EndTxn.
        self.asked: bool | None = None
        self.told: bool | None = None

    def __str__(self) -> str:
        ends = {None: "nothing", True: "commit", False: "abort"}
        return f"transaction {self.number} of {self.producer}, asked to {ends[self.asked]} and told {ends[self.told]}"

    def next_value(self) -> bytes:
        """A value that was not sent before."""
        self.sent_count += 1
        return f"{self.number}:{self.sent_count}".encode()


class Ledger:
    """All transactions, by their numbers, and the numbers of offsets committed in them."""

    def __init__(self) -> None:
        self.transactions: dict[int, SentTransaction] = {}
        self.of_offset: dict[int, SentTransaction] = {}
        self._offsets = 0

    def begin(self, transactional_id: str, producer: str) -> SentTransaction:
        """A new one."""
        sent = SentTransaction(len(self.transactions) + 1, transactional_id, producer)
        self.transactions[sent.number] = sent
        return sent

    def next_offset(self, sent: SentTransaction | None) -> int:
        """An offset that was not committed before, in a transaction or outside."""
        self._offsets += 1
        if sent is not None:
            self.of_offset[self._offsets] = sent
        return self._offsets

    def check(
        self,
        read: dict[Incarnation, list[bytes]],
        offsets: Iterable[SeenOffsets],
        *,
        is_over: bool,
    ) -> None:
        """``read`` has the values read from each existing partition. ``is_over``: no transaction is open. Raises Violation."""
        found: dict[int, dict[Incarnation, list[bytes]]] = defaultdict(dict)
        for partition, values in read.items():
            self._check_order(partition, values)
            for value in values:
                found[int(value.partition(b":")[0])].setdefault(partition, []).append(value)
        committed: dict[int, set[int]] = defaultdict(set)
        taken_back: set[int] = set()
        for seen in offsets:
            taken_back |= seen.taken_back
            for offset, is_commit in seen.fates.items():
                if is_commit and offset in self.of_offset:
                    committed[self.of_offset[offset].number].add(offset)
        for sent in self.transactions.values():
            parts = found.get(sent.number, {})
            expected = {partition: values for partition, values in sent.acknowledged.items() if partition in read}
            _check_fate(sent, parts, committed[sent.number], may_be_committed=bool(sent.asked))
            if is_over and (sent.told or parts or committed[sent.number]):
                # A late repetition of a request may find its topic deleted and recreated, and write records there that are gone
                # elsewhere.
                gone = {value for partition, values in sent.acknowledged.items() if partition not in read for value in values}
                own = {
                    place: [each for each in parts[place] if each not in gone or each in expected.get(place, ())]
                    for place in parts
                }
                whole = {place: values for place, values in own.items() if values}
                _check_whole(sent, whole, expected, committed[sent.number] | taken_back)

    def _check_order(self, partition: Incarnation, values: list[bytes]) -> None:
        latest: dict[str, tuple[int, int]] = {}
        for value in values:
            transaction, _, number = value.partition(b":")
            place = int(transaction), int(number)
            name = self.transactions[place[0]].transactional_id
            if place <= latest.get(name, (0, 0)):
                raise Violation(_ORDER, f"{partition}: {value!r} of {name} comes after {latest[name]}")
            latest[name] = place


def _check_fate(
    sent: SentTransaction, parts: dict[Incarnation, list[bytes]], offsets: set[int], *, may_be_committed: bool
) -> None:
    if (parts or offsets) and (not may_be_committed or sent.told is False):
        raise Violation(_FATE, f"{sent}: {parts} is read, and offsets {offsets} are committed")


def _check_whole(
    sent: SentTransaction,
    parts: dict[Incarnation, list[bytes]],
    expected: dict[Incarnation, list[bytes]],
    offsets: set[int],
) -> None:
    """A producer commits only if every record was acknowledged, so all of them must be read."""
    expected = {partition: values for partition, values in expected.items() if values}
    if parts != expected:
        raise Violation(_WHOLE, f"{sent}: {parts} is read of {expected}")
    if not offsets.issuperset(sent.offsets):
        raise Violation(_WHOLE, f"{sent}: of the offsets {sent.offsets} {sorted(offsets & set(sent.offsets))} are committed")
