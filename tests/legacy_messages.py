"""Messages of formats v0 and v1, built field by field and with the codecs of kafka-python, as brokers before 0.11 wrote them.

``odradek.protocol.record_batch`` has the layout. Nothing of odradek is used here.
"""

import gzip
from collections.abc import Sequence
from struct import pack
from typing import NamedTuple
from zlib import crc32

from kafka import codec as codecs

APPEND_TIME = 0x08
CODECS = {
    "gzip": (1, lambda data: gzip.compress(data, mtime=0)),
    "snappy": (2, codecs.snappy_encode),
    "raw-snappy": (2, lambda data: codecs.snappy_encode(data, xerial_compatible=False)),
    "lz4": (3, codecs.lz4_encode),
}


class Legacy(NamedTuple):
    """A record to be written; a v0 message has no timestamp."""

    offset: int
    timestamp: int = -1
    key: bytes | None = None
    value: bytes | None = None


def message(magic: int, record: Legacy, attributes: int = 0, offset: int | None = None) -> bytes:
    """One message, at the record's offset or another one."""
    fields = pack(">bB", magic, attributes) + (pack(">q", record.timestamp) if magic else b"")
    for field in (record.key, record.value):
        fields += pack(">i", -1) if field is None else pack(">i", len(field)) + field
    return pack(">qiI", record.offset if offset is None else offset, len(fields) + 4, crc32(fields)) + fields


def wrapper(
    magic: int, codec: str, records: Sequence[Legacy], *, append_time_ms: int | None = None, inner: int | None = None
) -> bytes:
    """A compressed message of ``records``: of format ``inner`` if that is another, with LogAppendTime if a time is given."""
    inner = magic if inner is None else inner
    begin = records[0].offset if magic else 0
    data = b"".join(message(inner, record, offset=record.offset - begin) for record in records)
    number, encode = CODECS[codec]
    if codec == "lz4" and magic == 0:
        encode = codecs.lz4_encode_old_kafka
    timestamp = append_time_ms
    if timestamp is None:
        timestamp = max(record.timestamp for record in records) if inner else -1
    attributes = number if append_time_ms is None else number | APPEND_TIME
    return message(magic, Legacy(records[-1].offset, timestamp, None, bytes(encode(data))), attributes)
