"""The size of a Fetch response for quotas, counted as in Kafka: its body in its version, and four bytes.

Left out: the tagged fields with leaders and diverging epochs.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from odradek.protocol.varint import uvarint

if TYPE_CHECKING:
    from uuid import UUID

    from odradek.broker.replica.fetch_sessions import Results

_FLEXIBLE: Final = 12
_BY_ID: Final = 13
_ID_BYTES: Final = 16
_ABORTED_BYTES: Final = 16
# Index, error code, high watermark, last stable offset; from version 5 on the log start offset, from 11 on a replica id.
_PARTITION_BYTES: Final = 22
_LOG_START_BYTES: Final = 8
_PREFERRED_BYTES: Final = 4
_LENGTH_BYTES: Final = 4
# The throttle time; from version 7 on, error code and session id.
_HEAD_BYTES: Final = 4
_SESSION_BYTES: Final = 6


def fetch_response_bytes(version: int, results: "Results") -> int:
    """Return the size of the response with these results."""
    by_topic = [(key, [data for _, data in group]) for key, group in groupby(results, lambda result: result[0].topic_key)]
    size = _LENGTH_BYTES + _HEAD_BYTES + (_SESSION_BYTES if version >= 7 else 0) + _length(version, by_topic) + _tags(version)
    fixed = _PARTITION_BYTES + (_LOG_START_BYTES if version >= 5 else 0) + (_PREFERRED_BYTES if version >= 11 else 0)
    for key, partitions in by_topic:
        size += _topic(version, key) + _length(version, partitions) + _tags(version)
        for data in partitions:
            aborted = data.aborted_transactions
            records_bytes = 0 if data.records is None else len(data.records)
            size += fixed + _length(version, aborted or ()) + _tags(version)
            size += (_ABORTED_BYTES + _tags(version)) * len(aborted or ())
            size += records_bytes + (len(uvarint(records_bytes + 1)) if version >= _FLEXIBLE else _LENGTH_BYTES)
    return size


def _topic(version: int, key: "UUID | str | None") -> int:
    if version >= _BY_ID or not isinstance(key, str):
        return _ID_BYTES
    name = key.encode()
    return len(name) + (len(uvarint(len(name) + 1)) if version >= _FLEXIBLE else 2)


def _length(version: int, items: Sequence[object]) -> int:
    return len(uvarint(len(items) + 1)) if version >= _FLEXIBLE else _LENGTH_BYTES


def _tags(version: int) -> int:
    return 1 if version >= _FLEXIBLE else 0
