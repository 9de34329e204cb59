"""Batches of records and what they are decoded to, with Spark's columns but without Spark; and records as brokers write them."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from odradek.pipeline import decode
from odradek.protocol.coordinator_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionLogKey,
    TransactionLogValue,
    encode_key,
    encode_value,
)

AT = datetime(2025, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
OFFSETS, TRANSACTIONS, SHARES = "__consumer_offsets", "__transaction_state", "__share_group_state"
# A subscription to two topics and an assignment of three partitions of one, as Kafka's clients write them.
SUBSCRIPTION = bytes.fromhex("0001 00000002 0001") + b"a" + bytes.fromhex("0001") + b"b" + bytes.fromhex("ffffffff 00000000")
ASSIGNMENT = (
    bytes.fromhex("0001 00000001 0001") + b"a" + bytes.fromhex("00000003 00000000 00000001 00000002") + bytes.fromhex("ffffffff")
)


def batch_of(*some):
    """A batch of (topic, key, value) records at offsets 0, 1 and so on."""
    count = len(some)
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array([topic for topic, _, _ in some], pa.string()),
            "partition": pa.array([7] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "timestamp": pa.array([AT] * count, pa.timestamp("us", "UTC")),
            "key": pa.array([key for _, key, _ in some], pa.binary()),
            "value": pa.array([value for _, _, value in some], pa.binary()),
        }
    )


def rows_of(*batches):
    """What batches are decoded to, by offset, all columns of it."""
    found = list(decode.decode_batches(iter(batches)))
    for rows in found:
        rows.validate(full=True)
    return sorted([row for rows in found for row in rows.to_pylist()], key=lambda row: row["offset"])


def rows_one_by_one(*batches):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode, "_read_by_columns", lambda _batch: iter(()))
        return rows_of(*batches)


def left_of(*some):
    """The places of the records that are left to who reads them one by one."""
    left = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode, "read_one_by_one", lambda batch: left.extend(batch.column("offset").to_pylist()) or iter(()))
        list(decode.decode_batches(iter([batch_of(*some)])))
    return left


KEY_OF_GROUP = encode_key(GroupMetadataKey("g"))
KEY_OF_OFFSET = encode_key(OffsetCommitKey("g", "orders", 2))
KEY_OF_TRANSACTION = encode_key(TransactionLogKey("tx"))
BROKEN = (OFFSETS, b"\0", None)


def transaction(partitions=(), status=1, **fields):
    value = TransactionLogValue(9, 2, 60_000, status, frozenset(partitions), 1_700_000_000_500, 1_700_000_000_000, **fields)
    return TRANSACTIONS, KEY_OF_TRANSACTION, encode_value(value)


def group(count=1, protocol_type="consumer", protocol="range", leader="m-0"):
    of_group = tuple(
        MemberMetadata(f"m-{number}", None, "client", "/10.0.0.1", 60_000, 45_000, SUBSCRIPTION, ASSIGNMENT)
        for number in range(count)
    )
    value = GroupMetadataValue(protocol_type, 4, protocol, leader, 1_700_000_000_000, of_group)
    return OFFSETS, KEY_OF_GROUP, encode_value(value)


def offset(**fields):
    return OFFSETS, KEY_OF_OFFSET, encode_value(OffsetCommitValue(42, 3, **fields))
