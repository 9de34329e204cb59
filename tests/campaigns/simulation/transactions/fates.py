"""What ``__transaction_state`` says, record by record as it is appended: whose producer ids, which epochs, which transactions,
how each ended; and whether each record may follow on the one before.

The rules are written down here once more, from Kafka's TransactionMetadata and KIP-890: the product's are part of what is
checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.coordinator_records import TransactionLogKey, TransactionLogValue, decode_transaction_key, decode_value
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """How one transaction was decided to end. ``missing`` are the partitions that have no marker yet.

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
        """What was there before the history began."""
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
        """Whether the log has somebody newer than this producer."""
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
