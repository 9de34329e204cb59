"""Building a large batch in slices: what ``records.build_batch`` does, as a generator that can be left between its records."""

from collections.abc import Callable, Generator, Sequence
from typing import Final, TypeVar

from odradek.protocol.record_batch import NO_PRODUCER_ID, assembled
from odradek.protocol.records import Record, write_record

T = TypeVar("T")

# Each is encoded and written in less than a millisecond.
_BLOCK: Final = 64


def build_sliced_batch(sources: Sequence[T], encode: Callable[[T], bytes], timestamp_ms: int) -> Generator[None, None, bytes]:
    """A v2 batch of a record for each of ``sources``, whose value is what ``encode`` makes of it; one at least."""
    if not sources:
        raise ValueError("a batch has one record at least")
    # ``assembled`` puts the header in the first one's place.
    chunks = [b""]
    for first in range(0, len(sources), _BLOCK):
        if first:
            yield
        data = bytearray()
        for number, source in enumerate(sources[first : first + _BLOCK], first):
            write_record(data, Record(value=encode(source)), number, 0)
        chunks.append(bytes(data))
    return assembled(0, -1, 0, len(sources), timestamp_ms, NO_PRODUCER_ID, -1, chunks)
