"""Transaction markers in control batches: which transactions they end."""

from typing import Final

from odradek.protocol.control_records import ABORT, COMMIT, read_control_record
from odradek.protocol.record_batch import BatchHeader, Buffer
from odradek.protocol.records import read_records
from odradek.storage.producer_state import ProducerStates
from odradek.storage.transaction_index import AbortedTransaction

_KINDS: Final = (ABORT, COMMIT)


def ensure_readable(batch: Buffer) -> None:
    """Raise MalformedMessage unless every control record of ``batch`` can be read."""
    for record in read_records(batch):
        read_control_record(record)


def record_markers(header: BatchHeader, batch: Buffer, producers: ProducerStates) -> list[AbortedTransaction]:
    """Note the markers of a control batch in ``producers``; returns the transactions with records that they abort.

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
