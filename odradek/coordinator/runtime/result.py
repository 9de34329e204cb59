"""The decision of an operation on a shard: records and responses.

A record is a change to the coordinator's persistent state, or the end of a transaction. It is encoded when it is appended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from odradek.protocol.coordinator_records import (
    CoordinatorKey,
    CoordinatorValue,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionLogKey,
    TransactionLogValue,
    UnknownKey,
    decode_group_key,
    decode_value,
    encode_key,
    encode_value,
    offsets,
    transactions,
)
from odradek.protocol.errors import KafkaError
from odradek.timing.reply import Reply


class CoordinatorRecord(NamedTuple):
    """One record of a coordinator's log: a key of ``protocol.coordinator_records`` and its value, None for a tombstone.

    A named tuple, not a dataclass: each partition of each commit makes one.
    """

    key: CoordinatorKey
    value: CoordinatorValue | None


def encode_record(record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
    """Return (key, value) as stored in the log. Raises struct.error for a string too long for its 16-bit length."""
    key, value = record
    if type(key) is OffsetCommitKey and type(value) is OffsetCommitValue:
        return offsets.encode_key(key), offsets.encode_value(value)
    if type(key) is TransactionLogKey and type(value) is TransactionLogValue:
        return transactions.encode_key(key), transactions.encode_value(value)
    return encode_key(key), None if value is None else encode_value(value)


def decode_group_record(key: bytes, value: bytes | None) -> CoordinatorRecord | None:
    """Decode a record of ``__consumer_offsets``. Return None if the key's version is unknown.

    Raises MalformedMessage.
    """
    decoded = decode_group_key(key)
    if isinstance(decoded, UnknownKey):
        return None
    return CoordinatorRecord(decoded, decode_value(decoded, value))


class EndTxnMarker(NamedTuple):
    """The commit or abort of a producer's transaction, which id and epoch identify.

    With ``transaction_version`` 2 the epoch is one above the transaction's own epoch (KIP-890).
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int = 0


T = TypeVar("T")


class DeferredResponse:
    """The type of ``DEFERRED_RESPONSE``."""

    def __repr__(self) -> str:
        return "DEFERRED_RESPONSE"


# Stands for a response: the shard holds the operation's reply. This or a later result completes it through ``responses``.
DEFERRED_RESPONSE: Final = DeferredResponse()


class CoordinatorResult(Generic[T]):
    """Records to append and replay, and the responses to give once they are committed. Kafka's class of this name.

    ``response`` is for the operation's own reply, ``responses`` for replies that the shard held. The runtime completes all of
    them once the high watermark has passed the records. If the append fails, or the shard is unloaded before the commit, it fails
    all of them with the KafkaError. Replies that are done already are left alone.

    ``on_commit`` is called when the records are committed, before any response is given; it may add to ``responses``. Its own
    records for the same shard are appended before a response is given. ``on_failure`` is called instead of ``on_commit`` when the
    responses fail. It corrects state outside the timelines, which are rolled back by then. If several results fail together, the
    latest is corrected first. Operations submitted meanwhile are queued until all are corrected.

    The records go into one batch, all or nothing. If ``atomic`` is False they may be split into several batches; batches appended
    before a failure stay.

    With a ``producer``, an id and its epoch, the records are part of its transaction; a ``marker`` ends a transaction, without
    records. Only a ``TransactionalShard`` may use these.
    """

    __slots__ = ("atomic", "marker", "on_commit", "on_failure", "producer", "records", "response", "responses")

    def __init__(
        self,
        records: Sequence[CoordinatorRecord],
        response: T | DeferredResponse,
        on_failure: Callable[[KafkaError], None] | None = None,
        on_commit: Callable[[], None] | None = None,
        atomic: bool = True,
        producer: tuple[int, int] | None = None,
        marker: EndTxnMarker | None = None,
        responses: Sequence[tuple[Reply[Any], object]] = (),
    ) -> None:
        self.records = records
        self.response = response
        self.on_failure = on_failure
        self.on_commit = on_commit
        self.atomic = atomic
        self.producer = producer
        self.marker = marker
        self.responses = responses
