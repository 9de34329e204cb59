"""Building a large batch in slices: what ``records.build_batch`` does, as a generator that can be left between its records."""

from collections.abc import Callable, Generator, Sequence
from typing import Final, TypeVar

from odradek.protocol.record_batch import HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC, NO_PRODUCER_ID, NO_SEQUENCE, sealed
from odradek.protocol.records import Record, write_record

T = TypeVar("T")

# Each is encoded and written in less than a millisecond.
_BLOCK: Final = 64


def build_sliced_batch(sources: Sequence[T], encode: Callable[[T], bytes], timestamp_ms: int) -> Generator[None, None, bytes]:
    """A v2 batch of a record for each of ``sources``, whose value is what ``encode`` makes of it; one at least."""
    if not sources:
        raise ValueError("a batch has one record at least")
    data = bytearray()
    for number, source in enumerate(sources):
        write_record(data, Record(value=encode(source)), number, 0)
        if number % _BLOCK == _BLOCK - 1:
            yield
    head = HEADER.pack(
        0,
        HEADER_SIZE - LOG_OVERHEAD + len(data),
        -1,
        MAGIC,
        0,
        0,
        len(sources) - 1,
        timestamp_ms,
        timestamp_ms,
        NO_PRODUCER_ID,
        -1,
        NO_SEQUENCE,
        len(sources),
    )
    return sealed(head, data)
