"""Records of the group coordinator: the bytes are Kafka's in every version, and bytes that are no record raise one error."""

import tracemalloc
from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.coordinator_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    UnknownKey,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from odradek.protocol.errors import MalformedMessage
from tests.cases import each_case

TOPIC_ID = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
NOW_MS = 1_700_000_000_000
OFFSET_KEY = OffsetCommitKey("grp", "töpic", 7)
GROUP_KEY = GroupMetadataKey("grp")
OFFSET = OffsetCommitValue(1234567890123, 5, "mé", NOW_MS)
MEMBERS = (
    MemberMetadata("m-1", "i-1", "c", "/127.0.0.1", 300_000, 45_000, b"\1\2", b"\3"),
    MemberMetadata("m-2", None, "c", "/h", 2, 1, b"", b""),
)
GROUP = GroupMetadataValue("consumer", 4, "range", "m-1", NOW_MS, MEMBERS)
EMPTY_GROUP = GroupMetadataValue("", 0, None, None, NOW_MS)

# All that follow were written by the generated classes of Kafka 4.3.1.
KEYS = [
    (OFFSET_KEY, "00010003677270000674c3b670696300000007"),
    (GROUP_KEY, "00020003677270"),
]
_GROUP_HEAD = "0008636f6e73756d657200000004000572616e676500036d2d31"
_HOST = "000163000a2f3132372e302e302e31"
_DATA = "000000020102000000010300036d2d32"
VALUES = [
    (OFFSET, "00040000011f71fb04cb00000005046dc3a90000018bcfe5680000"),
    (
        OFFSET._replace(topic_id=TOPIC_ID),
        "00040000011f71fb04cb00000005046dc3a90000018bcfe56800010010000102030405060708090a0b0c0d0e0f",
    ),
    (OFFSET._replace(metadata=""), "00040000011f71fb04cb00000005010000018bcfe5680000"),
    (
        OFFSET._replace(metadata="", topic_id=TOPIC_ID),
        "00040000011f71fb04cb00000005010000018bcfe56800010010000102030405060708090a0b0c0d0e0f",
    ),
    (
        OFFSET._replace(leader_epoch=-1, expire_timestamp_ms=NOW_MS + 1000),
        "00010000011f71fb04cb00036dc3a90000018bcfe568000000018bcfe56be8",
    ),
    (
        GROUP,
        "0003" + _GROUP_HEAD + "0000018bcfe568000000000200036d2d310003692d31" + _HOST + "000493e00000afc8" + _DATA
        + "ffff00016300022f6800000002000000010000000000000000",
    ),
    (EMPTY_GROUP, "0003000000000000ffffffff0000018bcfe5680000000000"),
]  # fmt: skip
OLDER_VALUES = [
    (OFFSET_KEY, OFFSET._replace(leader_epoch=-1), "00000000011f71fb04cb00036dc3a90000018bcfe56800"),
    (OFFSET_KEY, OFFSET._replace(leader_epoch=-1), "00020000011f71fb04cb00036dc3a90000018bcfe56800"),
    (OFFSET_KEY, OFFSET, "00030000011f71fb04cb0000000500036dc3a90000018bcfe56800"),
    (
        GROUP_KEY,
        GROUP._replace(
            current_state_timestamp_ms=-1,
            members=tuple(member._replace(group_instance_id=None, rebalance_timeout_ms=-1) for member in MEMBERS),
        ),
        "0000" + _GROUP_HEAD + "0000000200036d2d31" + _HOST + "0000afc8" + _DATA + "00016300022f68000000010000000000000000",
    ),
    (
        GROUP_KEY,
        GROUP._replace(
            current_state_timestamp_ms=-1, members=tuple(member._replace(group_instance_id=None) for member in MEMBERS)
        ),
        "0001" + _GROUP_HEAD + "0000000200036d2d31" + _HOST + "000493e00000afc8" + _DATA
        + "00016300022f6800000002000000010000000000000000",
    ),
    (
        GROUP_KEY,
        GROUP._replace(members=tuple(member._replace(group_instance_id=None) for member in MEMBERS)),
        "0002" + _GROUP_HEAD + "0000018bcfe568000000000200036d2d31" + _HOST + "000493e00000afc8" + _DATA
        + "00016300022f6800000002000000010000000000000000",
    ),
    (
        GROUP_KEY,
        GROUP,
        "0004" + "09636f6e73756d6572000000040672616e6765046d2d310000018bcfe5680003046d2d3104692d3102630b2f3132372e302e302e31"
        + "000493e00000afc8030102020300046d2d32000263032f68000000020000000101010000",
    ),
]  # fmt: skip


def key_of(value):
    return OFFSET_KEY if isinstance(value, OffsetCommitValue) else GROUP_KEY


@pytest.mark.parametrize(("key", "expected"), KEYS)
def test_a_key_is_written_as_kafka_writes_it(key, expected):
    assert encode_key(key).hex() == expected


@pytest.mark.parametrize(("key", "encoded"), KEYS)
def test_a_key_is_read_back(key, encoded):
    assert decode_key(bytes.fromhex(encoded)) == key


def test_an_offsets_key_of_version_0_reads_like_one_of_version_1():
    assert decode_key(b"\0\0" + encode_key(OFFSET_KEY)[2:]) == OFFSET_KEY


@each_case("version", [3, 16, 32767, -1])
def test_a_key_of_a_version_not_known_is_told_apart(version):
    assert decode_key(version.to_bytes(2, "big", signed=True) + b"\0\1x") == UnknownKey(version)


@each_case(("value", "expected"), VALUES)
def test_a_value_is_written_as_kafka_writes_it(value, expected):
    assert encode_value(value).hex() == expected


@each_case(("value", "encoded"), VALUES)
def test_a_value_is_read_back(value, encoded):
    assert decode_value(key_of(value), bytes.fromhex(encoded)) == value


@each_case(("key", "value", "encoded"), OLDER_VALUES)
def test_a_value_of_another_version_is_read_as_kafka_wrote_it(key, value, encoded):
    assert decode_value(key, bytes.fromhex(encoded)) == value


@pytest.mark.parametrize("key", [OFFSET_KEY, GROUP_KEY])
def test_a_null_value_is_a_tombstone(key):
    assert decode_value(key, None) is None


@each_case("key", [OFFSET_KEY, GROUP_KEY])
@each_case("version", [-1, 5])
def test_a_value_of_a_version_not_known_is_malformed(key, version):
    with pytest.raises(MalformedMessage):
        decode_value(key, version.to_bytes(2, "big", signed=True) + bytes(40))


def test_a_zero_topic_id_is_none():
    encoded = encode_value(OFFSET._replace(metadata="", topic_id=TOPIC_ID))
    assert decode_value(OFFSET_KEY, encoded.replace(TOPIC_ID.bytes, bytes(16))).topic_id is None


def test_a_tagged_field_not_known_is_passed_over():
    plain = encode_value(OFFSET)
    assert decode_value(OFFSET_KEY, plain[:-1] + b"\1\7\2xy") == OFFSET


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
RECORDS = st.one_of(
    st.tuples(
        st.builds(OffsetCommitKey, NAMES, NAMES, INT32),
        st.builds(OffsetCommitValue, INT64, INT32, NAMES, INT64, st.just(-1), st.none() | st.uuids(version=4)),
    ),
    st.tuples(
        st.builds(OffsetCommitKey, NAMES, NAMES, INT32),
        st.builds(OffsetCommitValue, INT64, st.just(-1), NAMES, INT64, st.integers(0, 2**63 - 1), st.none()),
    ),
    st.tuples(
        st.builds(GroupMetadataKey, NAMES),
        st.builds(
            GroupMetadataValue,
            NAMES,
            INT32,
            st.none() | NAMES,
            st.none() | NAMES,
            INT64,
            st.lists(
                st.builds(
                    MemberMetadata,
                    NAMES,
                    st.none() | NAMES,
                    NAMES,
                    NAMES,
                    INT32,
                    INT32,
                    st.binary(max_size=20),
                    st.binary(max_size=20),
                ),
                max_size=3,
            ).map(tuple),
        ),
    ),
)


@given(RECORDS)
def test_every_record_survives_the_log(record):
    key, value = record
    assert decode_key(encode_key(key)) == key
    assert decode_value(key, encode_value(value)) == value


@given(RECORDS, st.data())
def test_a_record_cut_short_is_malformed(record, data):
    key, value = record
    for encoded, decode in ((encode_key(key), decode_key), (encode_value(value), lambda raw: decode_value(key, raw))):
        with pytest.raises(MalformedMessage):
            decode(encoded[: data.draw(st.integers(0, len(encoded) - 1))])


@given(RECORDS)
def test_a_record_with_bytes_behind_it_is_malformed(record):
    key, value = record
    with pytest.raises(MalformedMessage):
        decode_key(encode_key(key) + b"\0")
    with pytest.raises(MalformedMessage):
        decode_value(key, encode_value(value) + b"\0")


@given(st.sampled_from([b"", b"\0\0", b"\0\1", b"\0\2", b"\0\3", b"\0\4"]), st.binary(max_size=80))
def test_any_bytes_decode_or_are_malformed(head, body):
    for decode in (decode_key, lambda raw: decode_value(OFFSET_KEY, raw), lambda raw: decode_value(GROUP_KEY, raw)):
        with suppress(MalformedMessage):
            decode(head + body)


def test_long_names_are_encoded_and_not_remembered():
    tracemalloc.start()
    try:
        for number in range(2_000):
            key = OffsetCommitKey(f"{number:010}" * 1_000, "t", 1)
            assert decode_key(encode_key(key)) == key
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2 * 2**20
