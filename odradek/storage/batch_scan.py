"""Walking over the batches that lie one behind the other in a segment file, by their headers.

A message of format v0 or v1 is a batch here (``odradek.protocol.record_batch``).

Reads go in chunks: a chunk holds many headers if batches are small, and large batches are skipped between their headers. Bytes
that are no batch raise LogCorrupt, and so does an end within a batch: callers pass the end of the last whole write.
"""

from collections.abc import Iterator
from typing import Final

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.record_batch import HEADER_SIZE, MAGIC, BatchHeader, read_header
from odradek.storage.errors import LogCorrupt, unknown_format
from odradek.storage.filesystem import File

_CHUNK_BYTES: Final = 64 * 1024


def iter_headers(file: File, position: int, end: int, chunk_bytes: int = _CHUNK_BYTES) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each batch from ``position``, where one begins, to ``end``, where one ends."""
    chunk = b""
    chunk_start = position
    while position < end:
        if position + HEADER_SIZE > chunk_start + len(chunk):
            chunk = file.pread(min(chunk_bytes, end - position), position)
            chunk_start = position
        try:
            header = read_header(chunk, position - chunk_start)
        except MalformedMessage as error:
            raise LogCorrupt(f"at position {position}: {error.reason}") from error
        size = header.size_bytes
        if not 0 <= header.magic <= MAGIC:
            raise unknown_format(f"at position {position}", header.magic)
        if position + size > end:
            raise LogCorrupt(f"at position {position}: a batch of {size} bytes, the log ends at {end}")
        yield position, header
        position += size
