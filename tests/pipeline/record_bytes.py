"""Records of the coordinators' topics, as bytes: strategies for all sorts, well made, of older versions and broken."""

import struct
from uuid import UUID

from hypothesis import strategies as st

from odradek.protocol.coordinator_records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionLogKey,
    encode_key,
    encode_value,
)
from odradek.protocol.varint import uvarint
from tests.pipeline.decoded import ASSIGNMENT, OFFSETS, SHARES, SUBSCRIPTION, TRANSACTIONS
from tests.protocol import test_newer_groups

int8s, int16s, int32s, int64s = (st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64))
names = st.one_of(st.text(max_size=8), st.sampled_from(["orders", "é", "\U0010ffff", "\uffff", "x" * 130]))


def string(text):
    return b"\xff\xff" if text is None else struct.pack(">h", len(text.encode())) + text.encode()


def compact_string(text):
    return b"\0" if text is None else uvarint(len(text.encode()) + 1) + text.encode()


def array(elements, *, is_compact=True, is_null=False):
    if is_null:
        return b"\0" if is_compact else struct.pack(">i", -1)
    return (uvarint(len(elements) + 1) if is_compact else struct.pack(">i", len(elements))) + b"".join(elements)


@st.composite
def transaction_values(draw):
    """Of either version; topics and their partitions as they come, more than once, or null; tagged fields of all sorts."""
    version = draw(st.sampled_from([1, 1, 1, 0]))
    is_compact = version > 0
    write, tags = (compact_string, b"\0") if is_compact else (string, b"")
    nulls = st.sampled_from([False, False, False, True])
    topics = [
        write(topic)
        + array([struct.pack(">i", each) for each in partitions], is_compact=is_compact, is_null=draw(nulls) and not partitions)
        + tags
        for topic, partitions in draw(
            st.lists(
                st.tuples(st.one_of(names, st.sampled_from(["a", "b", None])), st.lists(st.integers(-1, 3), max_size=5)),
                max_size=4,
            )
        )
    ]
    status = draw(st.one_of(st.integers(0, 7), int8s))
    head = struct.pack(">hqhib", version, draw(int64s), draw(int16s), draw(int32s), status)
    value = head + array(topics, is_compact=is_compact, is_null=draw(nulls) and not topics)
    value += struct.pack(">qq", draw(int64s), draw(int64s))
    if not is_compact:
        return value
    known = {
        0: draw(int64s.map(struct.Struct(">q").pack)),
        1: draw(int64s.map(struct.Struct(">q").pack)),
        2: draw(st.binary(min_size=2, max_size=2)),
        3: b"\0\1",
    }
    tagged = draw(st.one_of(st.sets(st.integers(0, 2)).map(sorted), st.lists(st.integers(0, 3), max_size=4)))
    return value + uvarint(len(tagged)) + b"".join(bytes((tag, len(known[tag]))) + known[tag] for tag in tagged)


members = st.tuples(
    names,
    st.none() | names,
    names,
    names,
    int32s,
    int32s,
    st.sampled_from([SUBSCRIPTION, b"", b"\0\1 their own"]) | st.binary(max_size=8),
    st.sampled_from([ASSIGNMENT, b""]) | st.binary(max_size=8),
)


@st.composite
def group_values(draw):
    """Of any version."""
    version = draw(st.sampled_from([3, 3, 3, 3, 0, 1, 2, 4]))
    write = compact_string if version >= 4 else string
    tags = b"\0" if version >= 4 else b""

    def write_bytes(data):
        return (uvarint(len(data) + 1) if version >= 4 else struct.pack(">i", len(data))) + data

    def write_member(member):
        member_id, group_instance_id, client_id, client_host, rebalance, session, subscription, assignment = member
        return b"".join(
            [
                write(member_id),
                write(group_instance_id) if version >= 3 else b"",
                write(client_id),
                write(client_host),
                struct.pack(">i", rebalance) if version >= 1 else b"",
                struct.pack(">i", session),
                write_bytes(subscription),
                write_bytes(assignment),
                tags,
            ]
        )

    protocol_type = draw(st.one_of(st.just("consumer"), st.sampled_from(["", "connect", None])))
    written = [write_member(member) for member in draw(st.lists(members, max_size=4))]
    return b"".join(
        [
            struct.pack(">h", version),
            write(protocol_type),
            struct.pack(">i", draw(int32s)),
            write(draw(st.none() | names)),
            write(draw(st.none() | names)),
            struct.pack(">q", draw(int64s)) if version >= 2 else b"",
            array(written, is_compact=version >= 4),
            tags,
        ]
    )


def older_offset_value(version, offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms):
    """An offset in one of the versions from 0 to 3, with what that has of these."""
    epoch = struct.pack(">i", leader_epoch) if version == 3 else b""
    expiry = struct.pack(">q", expire_timestamp_ms) if version == 1 else b""
    return struct.pack(">hq", version, offset) + epoch + string(metadata) + struct.pack(">q", commit_timestamp_ms) + expiry


offset_values = st.one_of(
    st.builds(
        OffsetCommitValue,
        int64s,
        int32s,
        st.one_of(st.just(""), names, st.text("x", min_size=120, max_size=140)),
        int64s,
        st.one_of(st.just(-1), int64s),
        st.one_of(st.none(), st.just(UUID(int=0)), st.uuids()),
    ).map(encode_value),
    st.builds(older_offset_value, st.integers(0, 3), int64s, int32s, st.none() | names, int64s, int64s),
)
offset_keys = st.builds(OffsetCommitKey, names, names, int32s).map(encode_key)
group_keys = st.builds(GroupMetadataKey, names).map(encode_key)
transaction_keys = st.builds(TransactionLogKey, names).map(encode_key)
newer = st.sampled_from([tuple(bytes.fromhex(part) for part in written[1:3]) for written in test_newer_groups.WRITTEN])


@st.composite
def bent(draw, whole):
    """Bytes that are well made, or have a byte changed, or are cut off, or go on."""
    data = bytearray(draw(whole))
    how = draw(st.sampled_from(["", "", "", "changed", "cut", "longer"]))
    at = draw(st.integers(0, max(len(data) - 1, 0)))
    if how == "changed" and data:
        data[at] = draw(st.one_of(st.integers(0, 255), st.sampled_from([0, 1, 0x7F, 0x80, 0xFF])))
    elif how == "cut":
        del data[at:]
    elif how == "longer":
        data += draw(st.binary(min_size=1, max_size=20))
    return bytes(data)


def records_of(topic, keys, values):
    return st.tuples(st.just(topic), st.one_of(bent(keys), keys), st.one_of(st.none(), values, bent(values)))


records = st.one_of(
    records_of(OFFSETS, offset_keys, offset_values),
    records_of(OFFSETS, group_keys, group_values()),
    records_of(TRANSACTIONS, transaction_keys, transaction_values()),
    newer.map(lambda written: (OFFSETS, *written)),
    st.tuples(
        st.sampled_from([OFFSETS, TRANSACTIONS, SHARES]),
        st.none() | st.binary(max_size=14) | offset_keys | group_keys | transaction_keys,
        st.none() | st.binary(max_size=40) | offset_values | group_values() | transaction_values(),
    ),
)
