"""Transaction markers in control batches: reads them, and builds them once for all partitions of a transaction."""

from typing import Final

from odradek.protocol.control_records import ABORT, COMMIT, build_end_txn_marker, read_control_record
from odradek.protocol.record_batch import STAMPED_BYTES, BatchHeader, Buffer
from odradek.protocol.records import read_records
from odradek.storage.log.producer_state import ProducerStates
from odradek.storage.log.transaction_index import AbortedTransaction

_KINDS: Final = (ABORT, COMMIT)


def ensure_readable(batch: Buffer) -> None:
    """Raise MalformedMessage unless every control record of ``batch`` can be read."""
    for record in read_records(batch):
        read_control_record(record)


def record_markers(header: BatchHeader, batch: Buffer, producers: ProducerStates) -> list[AbortedTransaction]:
    """Note the markers of a control batch in ``producers``. Return the aborted transactions that have records.

    Control records of other kinds are skipped. Raises MalformedMessage.
    """
    found: list[AbortedTransaction] = []
    for record in read_records(batch):
        kind, coordinator_epoch = read_control_record(record)
        if kind in _KINDS:
            aborted = producers.record_marker(
                header.producer_id, header.producer_epoch, coordinator_epoch, kind == COMMIT, record.offset, record.timestamp
            )
            if aborted is not None:
                found.append(aborted)
    return found


class _LastMarker:
    """The last marker built, as a transaction ends with the same marker in each of its partitions."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        # The five arguments of ``batch`` and its result, in one tuple: brokers in other threads may replace it.
        self._known: tuple[int, int, int, bool, int, bytes, bytes] = (-1, -1, -1, False, -1, b"", b"")

    def batch(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, commit: bool, now_ms: int
    ) -> tuple[bytes, bytes]:
        """Return the marker's batch, and its bytes after the stamp (base offset, length, leader epoch)."""
        known = self._known
        if (
            known[0] != producer_id
            or known[1] != producer_epoch
            or known[2] != coordinator_epoch
            or known[3] != commit
            or known[4] != now_ms
        ):
            batch = build_end_txn_marker(producer_id, producer_epoch, coordinator_epoch, commit, now_ms)
            known = (producer_id, producer_epoch, coordinator_epoch, commit, now_ms, batch, batch[STAMPED_BYTES:])
            self._known = known
        return known[5], known[6]


LAST_MARKER: Final = _LastMarker()
