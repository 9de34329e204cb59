"""A change to a coordinator's persistent state, and the end of a transaction. They are encoded when they are appended."""

from typing import NamedTuple

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
