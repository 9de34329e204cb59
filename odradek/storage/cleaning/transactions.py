"""Tracks transactions during a clean, as it goes through a log from its first batch on.

A batch of an aborted transaction is dropped. A marker may be dropped once no data of its transaction is left before it. One clean
finds that out and notes a horizon in the marker's batch. A later one, after ``delete.retention.ms``, drops the marker (KIP-534).
"""

from collections.abc import Iterable

from odradek.protocol.control_records import ABORT, COMMIT, read_control_record
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.record_batch import BatchHeader
from odradek.protocol.records import read_records
from odradek.storage.log.transaction_index import AbortedTransaction


class CleanedTransactions:
    """The transactions of a clean, which passes each batch in turn.

    ``kept_aborts`` collects the aborted transactions whose markers must stay in the index.
    """

    __slots__ = ("_aborted", "_committed", "_has_data", "_upcoming", "kept_aborts")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Take ``aborted``, all aborted transactions with records in the part to be read."""
        self._upcoming = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
        # Aborted transactions that have begun, by producer id; the producers with a batch in them; and the producers with data in
        # a transaction that is not aborted.
        self._aborted: dict[int, AbortedTransaction] = {}
        self._has_data: set[int] = set()
        self._committed: set[int] = set()
        self.kept_aborts: list[AbortedTransaction] = []

    @property
    def has_open(self) -> bool:
        """Return whether a transaction with data has not met its marker yet."""
        return bool(self._committed or self._has_data)

    def is_aborted(self, header: BatchHeader) -> bool:
        """Return whether a batch of data belongs to an aborted transaction, and can be dropped."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._has_data.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def is_spent(self, header: BatchHeader, batch: bytes | memoryview) -> bool:
        """Return whether no data of the transaction that a control batch ends is left. Raises MalformedMessage."""
        self._begin_up_to(header.last_offset)
        if not header.record_count:
            # An empty control batch was spent before, and was kept for its producer's epoch.
            return True
        record = next(read_records(batch))
        try:
            kind, _ = read_control_record(record)
        except MalformedMessage:
            return False
        producer_id = header.producer_id
        if kind == ABORT:
            aborted = self._aborted.pop(producer_id, None)
            if aborted is None or producer_id not in self._has_data:
                return True
            self._has_data.discard(producer_id)
            self.kept_aborts.append(aborted)
            return False
        if kind == COMMIT:
            is_spent = producer_id not in self._committed
            self._committed.discard(producer_id)
            return is_spent
        return False

    def _begin_up_to(self, offset: int) -> None:
        upcoming = self._upcoming
        while upcoming and upcoming[-1].first_offset <= offset:
            aborted = upcoming.pop()
            self._aborted.setdefault(aborted.producer_id, aborted)
