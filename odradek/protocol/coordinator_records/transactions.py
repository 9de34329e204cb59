"""Transactional ids on ``__transaction_state``: TransactionLogKey version 0, TransactionLogValue 0 and 1.

The fields of each version are in ``tables``. As in Kafka 4.4, the next producer epoch (KIP-939) is neither written nor read.
odradek writes version 1. The array of topics is null while the status is 0, Empty.

A key of version 0 is a transactional id on ``__transaction_state``, but an offset on ``__consumer_offsets``.
"""

from functools import lru_cache
from itertools import groupby
from struct import Struct
from typing import Final, NamedTuple

from odradek.protocol.coordinator_records.fields import ValueCodec, ensure_end, read_nullable_string, required
from odradek.protocol.coordinator_records.tables import TRANSACTION_VALUE
from odradek.protocol.varint import uvarint

KEY_VERSION: Final = 0
_WRITTEN_VERSION: Final = 1
_EMPTY: Final = 0
_PREVIOUS_PRODUCER_ID_TAG: Final = 0
_NEXT_PRODUCER_ID_TAG: Final = 1
_CLIENT_VERSION_TAG: Final = 2
# The most partitions of a transaction whose encoding is cached.
_FEW: Final = 16
_NO_PRODUCER_ID: Final = -1

_pack_key_head: Final = Struct(">hh").pack
_HEAD: Final = Struct(">hqhib")
_pack_head: Final = _HEAD.pack
_INT32: Final = Struct(">i")
_TIMESTAMPS: Final = Struct(">qq")
_TAGGED_INT64: Final = Struct(">BBq")
_TAGGED_INT16: Final = Struct(">BBh")
# Timestamps, two tagged fields: previous producer id, client transaction version.
_pack_usual_rest: Final = Struct(">qqBBBqBBh").pack
_COUNTS: Final = (b"\0", b"\1", b"\2", b"\3")


class TransactionLogKey(NamedTuple):
    """The transactional id."""

    transactional_id: str


class TransactionLogValue(NamedTuple):
    """A transactional id's state. ``status`` is a ``TransactionState``'s number; times are in ms since the epoch, -1 for none.

    ``last_producer_epoch`` is not in the log. The writer of the record knows it; after a reload it is -1.
    """

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: int
    partitions: frozenset[tuple[str, int]]
    last_update_ms: int
    start_ms: int = -1
    previous_producer_id: int = -1
    next_producer_id: int = -1
    client_transaction_version: int = 0
    last_producer_epoch: int = -1


def encode_key(key: TransactionLogKey) -> bytes:
    """Encode version 0. Raises struct.error for an id of more than 32,767 bytes."""
    text = key.transactional_id.encode()
    return _pack_key_head(KEY_VERSION, len(text)) + text


def decode_key(data: bytes) -> TransactionLogKey:
    """Decode the key in ``data``, whose version 0 the caller has checked. Raises MalformedMessage."""
    transactional_id, position = read_nullable_string(data, 2)
    ensure_end(data, position)
    return TransactionLogKey(required(transactional_id))


def encode_value(value: TransactionLogValue) -> bytes:
    """Encode the value in version 1. Raises struct.error for a value that does not fit its field."""
    status = value.status
    head = _pack_head(_WRITTEN_VERSION, value.producer_id, value.producer_epoch, value.timeout_ms, status)
    topics = b"\0" if status == _EMPTY else _topics(value.partitions)
    if value.next_producer_id == _NO_PRODUCER_ID != value.previous_producer_id and value.client_transaction_version:
        # Nearly all values have this form.
        return b"".join(
            (
                head,
                topics,
                _pack_usual_rest(
                    value.last_update_ms,
                    value.start_ms,
                    2,
                    _PREVIOUS_PRODUCER_ID_TAG,
                    8,
                    value.previous_producer_id,
                    _CLIENT_VERSION_TAG,
                    2,
                    value.client_transaction_version,
                ),
            )
        )
    tagged = []
    if value.previous_producer_id != _NO_PRODUCER_ID:
        tagged.append(_TAGGED_INT64.pack(_PREVIOUS_PRODUCER_ID_TAG, 8, value.previous_producer_id))
    if value.next_producer_id != _NO_PRODUCER_ID:
        tagged.append(_TAGGED_INT64.pack(_NEXT_PRODUCER_ID_TAG, 8, value.next_producer_id))
    if value.client_transaction_version:
        tagged.append(_TAGGED_INT16.pack(_CLIENT_VERSION_TAG, 2, value.client_transaction_version))
    return b"".join(
        (
            head,
            topics,
            _TIMESTAMPS.pack(value.last_update_ms, value.start_ms),
            _COUNTS[len(tagged)],
            *tagged,
        )
    )


def _topics(partitions: frozenset[tuple[str, int]]) -> bytes:
    return _few_topics(partitions) if len(partitions) <= _FEW else _encode_topics(partitions)


# A producer's transactions often have the same partitions, and they are repeated in each state of a transaction.
@lru_cache(maxsize=1024)
def _few_topics(partitions: frozenset[tuple[str, int]]) -> bytes:
    return _encode_topics(partitions)


def _encode_topics(partitions: frozenset[tuple[str, int]]) -> bytes:
    if not partitions:
        return b"\1"
    by_topic = [
        (topic.encode(), [index for _, index in group]) for topic, group in groupby(sorted(partitions), key=lambda each: each[0])
    ]
    chunks = [uvarint(len(by_topic) + 1)]
    for topic, indexes in by_topic:
        chunks += [uvarint(len(topic) + 1), topic, uvarint(len(indexes) + 1)]
        chunks += [_INT32.pack(index) for index in indexes]
        chunks.append(b"\0")
    return b"".join(chunks)


def decode_value(data: bytes) -> TransactionLogValue:
    """Decode a value of version 0 or 1. Raises MalformedMessage."""
    stored: _Stored = _CODEC.decode(data)
    return TransactionLogValue(
        stored.producer_id,
        stored.producer_epoch,
        stored.transaction_timeout_ms,
        stored.transaction_status,
        frozenset((topic, index) for topic, indexes in stored.transaction_partitions or () for index in indexes),
        stored.transaction_last_update_timestamp_ms,
        stored.transaction_start_timestamp_ms,
        stored.previous_producer_id,
        stored.next_producer_id,
        stored.client_transaction_version,
    )


class _Stored(NamedTuple):
    """The value under Kafka's names."""

    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_status: int
    transaction_partitions: tuple[tuple[str, tuple[int, ...]], ...] | None
    transaction_last_update_timestamp_ms: int
    transaction_start_timestamp_ms: int
    previous_producer_id: int = _NO_PRODUCER_ID
    next_producer_id: int = _NO_PRODUCER_ID
    client_transaction_version: int = 0


_CODEC: Final = ValueCodec(TRANSACTION_VALUE, {"TransactionLogValue": _Stored})
