"""The batches of a Fetch response that a consumer may see: no markers, and with read_committed no aborted ones (KIP-98)."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from odradek.protocol.control_records import ABORT, read_control_record
from odradek.protocol.message_types.fetch import AbortedTransaction
from odradek.protocol.record_batch import BatchHeader, Buffer, iter_batches
from odradek.protocol.records import read_records


class FetchedBatch(NamedTuple):
    """The place of a batch in a response's records. Control batches and aborted batches are not visible."""

    position: int
    header: BatchHeader
    is_visible: bool


def fetched_batches(data: Buffer, aborted_transactions: Iterable[AbortedTransaction] | None) -> Iterator[FetchedBatch]:
    """Yield each batch. Aborted ones are found as Kafka's consumers find them. Raises MalformedMessage."""
    aborted = sorted(aborted_transactions or (), key=lambda transaction: transaction.first_offset)
    open_producers: set[int] = set()
    for position, header in iter_batches(data):
        while aborted and aborted[0].first_offset <= header.last_offset:
            open_producers.add(aborted.pop(0).producer_id)
        if header.is_control:
            if any(read_control_record(record)[0] == ABORT for record in read_records(data, position)):
                open_producers.discard(header.producer_id)
            yield FetchedBatch(position, header, is_visible=False)
        else:
            is_aborted = header.is_transactional and header.producer_id in open_producers
            yield FetchedBatch(position, header, is_visible=not is_aborted)
