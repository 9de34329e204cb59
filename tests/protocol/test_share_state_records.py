"""Records of the share coordinator: the bytes are Kafka's, and bytes that are none raise one error."""

from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.coordinator_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    UnknownKey,
    decode_share_state_key,
    decode_value,
    encode_key,
    encode_value,
)
from odradek.protocol.coordinator_records.share_states import StateBatch
from odradek.protocol.errors import MalformedMessage

PLACE = ("grüp", UUID(hex="0102030405060708090a0b0c0d0e0f10"), 2)
BATCHES = (StateBatch(5, 9, 0, 1), StateBatch(10, 10, 2, 3))
# All of these were written by the record helpers and the serializer of Kafka 4.4.0.
_KEY = "{:04x}00056772c3bc700102030405060708090a0b0c0d0e0f1000000002"
_BATCHES = "030000000000000005000000000000000900000100000000000000000a000000000000000a02000300"
_UPDATE = f"000000000003000000050000000000000005{_BATCHES}01000400000007"
WRITTEN = [
    (
        ShareSnapshotKey(*PLACE),
        ShareSnapshotValue(3, 4, 5, 5, 1_700_000_000_000, 1_700_000_001_000, BATCHES, 7),
        f"000000000003000000040000000500000000000000050000018bcfe568000000018bcfe56be8{_BATCHES}01000400000007",
    ),
    (
        ShareUpdateKey(*PLACE),
        ShareUpdateValue(3, 5, 5, BATCHES, 7),
        _UPDATE,
    ),
    (
        ShareSnapshotKey(*PLACE),
        ShareSnapshotValue(0, 0, 0, -1, 1_700_000_000_000, 1_700_000_000_000, ()),
        "0000000000000000000000000000ffffffffffffffff0000018bcfe568000000018bcfe568000100",
    ),
    (ShareUpdateKey(*PLACE), ShareUpdateValue(0, 0, -1, ()), "00000000000000000000ffffffffffffffff0100"),
]


def test_keys_and_values_are_kafkas():
    for key, value, written in WRITTEN:
        assert encode_key(key).hex() == _KEY.format(int(isinstance(key, ShareUpdateKey)))
        assert decode_share_state_key(encode_key(key)) == key
        assert encode_value(value).hex() == written
        assert decode_value(key, bytes.fromhex(written)) == value
        assert decode_value(key, None) is None
        for size in range(len(written) // 2):
            with pytest.raises(MalformedMessage):
                decode_value(key, bytes.fromhex(written)[:size])


def test_a_key_of_another_version_is_unknown():
    assert decode_share_state_key(b"\0\2abc") == UnknownKey(2)


@given(st.sampled_from([b"", b"\0\0", b"\0\1"]), st.binary(max_size=80))
def test_bytes_that_are_no_record_raise_one_error(head, data):
    for key, _, _ in WRITTEN[:2]:
        with suppress(MalformedMessage):
            decode_value(key, head + data)
        with suppress(MalformedMessage):
            decode_share_state_key(head + data)
