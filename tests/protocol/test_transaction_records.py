"""Records of the transaction coordinator: the bytes are Kafka's in both versions, and bytes that are none raise one error."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.coordinator_records import (
    TransactionLogKey,
    TransactionLogValue,
    UnknownKey,
    decode_transaction_key,
    decode_value,
    encode_key,
    encode_value,
)
from odradek.protocol.errors import MalformedMessage
from tests.cases import each_case

KEY = TransactionLogKey("tröx")
PARTITIONS = frozenset({("a", 0), ("a", 3), ("töpic", 11)})
OPEN = TransactionLogValue(1234567890123, 7, 60_000, 1, PARTITIONS, 1_700_000_000_000, 1_699_999_999_000)
NEW = TransactionLogValue(9, 0, 1000, 0, frozenset(), 1_700_000_000_000)

# All that follow were written by the generated classes of Kafka 4.3.1.
KEY_BYTES = bytes.fromhex("000000057472c3b678")
WRITTEN = [
    (
        OPEN._replace(previous_producer_id=5, next_producer_id=6, client_transaction_version=2),
        (
            "00010000011f71fb04cb00070000ea6001030261030000000000000003000774c3b6706963020000000b000000018bcfe568000000018bcfe564"
            "1803000800000000000000050108000000000000000602020002"
        ),
    ),
    (NEW, "000100000000000000090000000003e800000000018bcfe56800ffffffffffffffff00"),
    (
        NEW._replace(status=4, previous_producer_id=9),
        "000100000000000000090000000003e804010000018bcfe56800ffffffffffffffff0100080000000000000009",
    ),
]
OLD = [
    (
        OPEN,
        (
            "00000000011f71fb04cb00070000ea600100000002000161000000020000000000000003000674c3b6706963000000010000000b0000018bcfe568"
            "000000018bcfe56418"
        ),
    ),
    (NEW, "000000000000000000090000000003e800ffffffff0000018bcfe56800ffffffffffffffff"),
]

_INT64 = st.integers(-(2**63), 2**63 - 1)
_INT16 = st.integers(-(2**15), 2**15 - 1)
_VALUES = st.builds(
    TransactionLogValue,
    _INT64,
    _INT16,
    st.integers(-(2**31), 2**31 - 1),
    st.integers(1, 7),
    st.frozensets(st.tuples(st.text(max_size=5), st.integers(0, 2**31 - 1)), max_size=5),
    _INT64,
    _INT64,
    _INT64,
    _INT64,
    _INT16,
    st.just(-1),
)


def test_the_key_is_kafkas():
    assert encode_key(KEY) == KEY_BYTES
    assert decode_transaction_key(KEY_BYTES) == KEY


def test_a_key_of_another_version_is_unknown():
    assert decode_transaction_key(b"\0\1abc") == UnknownKey(1)


@pytest.mark.parametrize(("value", "written"), WRITTEN)
def test_values_are_kafkas(value, written):
    assert encode_value(value).hex() == written


@each_case(("value", "written"), WRITTEN + OLD)
def test_values_of_every_version_are_read(value, written):
    assert decode_value(KEY, bytes.fromhex(written)) == value


def test_a_tombstone_has_no_value():
    assert decode_value(KEY, None) is None


@given(_VALUES)
def test_what_is_written_is_read_again(value):
    assert decode_value(KEY, encode_value(value)) == value


@given(st.binary(max_size=80) | st.tuples(st.sampled_from([b"\0\0", b"\0\1"]), st.binary(max_size=80)).map(b"".join))
def test_bytes_that_are_no_value_raise_one_error(data):
    with suppress(MalformedMessage):
        decode_value(KEY, data)


@each_case("size", range(len(WRITTEN[0][1]) // 2))
def test_a_value_that_is_cut_off_is_malformed(size):
    with pytest.raises(MalformedMessage):
        decode_value(KEY, bytes.fromhex(WRITTEN[0][1])[:size])
