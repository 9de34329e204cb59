"""Records into rows, without Spark: what each kind says, and what becomes of bytes that say nothing."""

from typing import NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.pipeline import decode
from odradek.pipeline.decode import DECODED
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
from tests.pipeline.decoded import ASSIGNMENT, AT, OFFSETS, SUBSCRIPTION, TRANSACTIONS, batch_of, rows_of
from tests.protocol import test_newer_groups


def decoded(*records, topic=OFFSETS):
    """The rows of (key, value) records at offsets 0, 1 and so on, by offset; columns that are null left out."""
    rows = rows_of(batch_of(*((topic, key, value) for key, value in records)))
    assert all(list(row) == DECODED.names for row in rows)
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def only(*record, topic=OFFSETS):
    [row] = decoded(record, topic=topic)
    coordinates = {name: row.pop(name) for name in ("topic", "partition", "offset", "timestamp")}
    assert coordinates == {"topic": topic, "partition": 7, "offset": 0, "timestamp": AT}
    return row


def test_an_offset_commit_has_its_columns():
    topic_id = UUID(int=5)
    value = encode_value(OffsetCommitValue(42, 3, "note", 1_700_000_000_000, -1, topic_id))
    assert only(encode_key(OffsetCommitKey("g", "orders", 2)), value) == {
        "kind": "offset_commit",
        "key_version": 1,
        "value_version": 4,
        "is_tombstone": False,
        "group": "g",
        "commit_topic": "orders",
        "commit_partition": 2,
        "committed_offset": 42,
        "leader_epoch": 3,
        "metadata": "note",
        "commit_timestamp_ms": 1_700_000_000_000,
        "expire_timestamp_ms": -1,
        "topic_id": "AAAAAAAAAAAAAAAAAAAABQ",
    }


def test_a_tombstone_has_what_its_key_says():
    assert only(encode_key(OffsetCommitKey("g", "orders", 2)), None) == {
        "kind": "offset_commit",
        "key_version": 1,
        "is_tombstone": True,
        "group": "g",
        "commit_topic": "orders",
        "commit_partition": 2,
    }


def group(protocol_type, subscription, assignment):
    member = MemberMetadata("m-1", "i-1", "client", "/10.0.0.1", 60_000, 45_000, subscription, assignment)
    value = GroupMetadataValue(protocol_type, 4, "range", "m-1", 1_700_000_000_000, (member,))
    return only(encode_key(GroupMetadataKey("g")), encode_value(value))


def test_a_group_has_its_members_with_topics_and_assignment():
    row = group("consumer", SUBSCRIPTION, ASSIGNMENT)
    assert {name: row[name] for name in ("kind", "group", "protocol_type", "generation", "protocol", "leader")} == {
        "kind": "group_metadata",
        "group": "g",
        "protocol_type": "consumer",
        "generation": 4,
        "protocol": "range",
        "leader": "m-1",
    }
    assert row["state_timestamp_ms"] == 1_700_000_000_000
    assert row["members"] == [
        {
            "member_id": "m-1",
            "group_instance_id": "i-1",
            "client_id": "client",
            "client_host": "/10.0.0.1",
            "rebalance_timeout": 60_000,
            "session_timeout": 45_000,
            "topics": ["a", "b"],
            "assignment": [{"topic": "a", "partitions": [0, 1, 2]}],
        }
    ]


@pytest.mark.parametrize(
    ("protocol_type", "subscription", "assignment", "topics", "assigned"),
    [
        ("consumer", SUBSCRIPTION, b"", ["a", "b"], []),
        ("consumer", b"\0\1 their own", b"\0", None, None),
        ("connect", SUBSCRIPTION, ASSIGNMENT, None, None),
    ],
)
def test_what_members_say_is_read_only_where_it_is_consumers_language(protocol_type, subscription, assignment, topics, assigned):
    [member] = group(protocol_type, subscription, assignment)["members"]
    assert (member["topics"], member["assignment"]) == (topics, assigned)


def test_a_transaction_has_its_status_by_name_and_its_partitions_in_order():
    value = TransactionLogValue(9, 2, 60_000, 1, frozenset({("b", 0), ("a", 1), ("a", 0)}), 1_700_000_000_500, 1_700_000_000_000)
    row = only(encode_key(TransactionLogKey("tx")), encode_value(value), topic=TRANSACTIONS)
    assert row == {
        "kind": "transaction",
        "key_version": 0,
        "value_version": 1,
        "is_tombstone": False,
        "transactional_id": "tx",
        "producer_id": 9,
        "producer_epoch": 2,
        "timeout_ms": 60_000,
        "status": "Ongoing",
        "partitions": [{"topic": "a", "partition": 0}, {"topic": "a", "partition": 1}, {"topic": "b", "partition": 0}],
        "last_update_ms": 1_700_000_000_500,
        "start_ms": 1_700_000_000_000,
        "previous_producer_id": -1,
        "next_producer_id": -1,
        "client_transaction_version": 0,
    }


def test_the_newer_groups_records_are_told_apart_with_their_fields_as_json():
    key, value = bytes.fromhex("000800026773000173"), None
    row = only(key, value)
    assert row["kind"] == "consumer_group_current_member_assignment"
    assert row["is_tombstone"]
    assert row["group"] == "gs"
    assert row["fields"] == '{"group_id":"gs","member_id":"s"}'


@pytest.mark.parametrize(
    ("key", "value", "topic", "reason"),
    [
        (None, b"x", OFFSETS, "the record has no key"),
        (b"\0", b"x", OFFSETS, "a key of 1 bytes"),
        (b"\0\x63", None, OFFSETS, "the key's version, 99, does not exist"),
        (b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\x09", OFFSETS, "version 9 of OffsetCommitValue"),
        (b"\0\x01\0\1t", None, TRANSACTIONS, "a key on __transaction_state has version 1"),
        (b"\0\0\0\1t", bytes.fromhex("0000000000000000000100000000000163ffffffff") + bytes(16), TRANSACTIONS, "has status 99"),
    ],
)
def test_what_cannot_be_decoded_is_kept_as_it_was_with_the_reason(key, value, topic, reason):
    row = only(key, value, topic=topic)
    assert reason in row.pop("reason")
    assert row == {name: data for name, data in (("key", key), ("value", value)) if data is not None}


class KeyOfNewKind(NamedTuple):
    name: str


def test_a_key_of_a_kind_without_columns_is_none_of_a_transaction(monkeypatch):
    monkeypatch.setattr(decode, "decode_key", lambda _: KeyOfNewKind("n"))
    monkeypatch.setattr(decode, "decode_value", lambda *_: None)
    row = only(b"\0\x63", b"v")
    assert row == {"reason": "a KeyOfNewKind has no columns", "key": b"\0\x63", "value": b"v"}


keys = st.one_of(
    st.none(), st.binary(max_size=40), st.sampled_from([bytes.fromhex(key) for _, key, *_ in test_newer_groups.WRITTEN])
)


@given(st.lists(st.tuples(keys, st.none() | st.binary(max_size=80)), max_size=20), st.sampled_from([OFFSETS, TRANSACTIONS]))
def test_no_record_is_dropped_whatever_its_bytes(records, topic):
    rows = decoded(*records, topic=topic)
    assert [row["offset"] for row in rows] == list(range(len(records)))
    assert all(("reason" in row) != ("kind" in row) for row in rows)
