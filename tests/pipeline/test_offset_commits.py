"""Offset commits read by columns: row by row what the decoders of the coordinators' records say."""

import struct
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.pipeline import decode
from odradek.pipeline.offset_commits import offset_commits
from odradek.protocol.coordinator_records import OffsetCommitKey, OffsetCommitValue, encode_key, encode_value
from tests.pipeline.test_decode import OFFSETS, TRANSACTIONS, decoded

int64s = st.integers(-(2**63), 2**63 - 1)
names = st.text(max_size=20)
keys = st.builds(OffsetCommitKey, names, names, st.integers(-(2**31), 2**31 - 1)).map(encode_key)
values = st.builds(
    OffsetCommitValue,
    int64s,
    st.integers(-(2**31), 2**31 - 1),
    st.one_of(st.just(""), names, st.text("x", min_size=120, max_size=140)),
    int64s,
    st.one_of(st.just(-1), int64s),
    st.one_of(st.none(), st.just(UUID(int=0)), st.uuids()),
).map(encode_value)


@st.composite
def bent(draw, whole):
    """Bytes that are well made, or have a byte changed, or are cut off, or go on."""
    data = bytearray(draw(whole))
    how = draw(st.sampled_from(["", "", "changed", "cut", "longer"]))
    at = draw(st.integers(0, max(len(data) - 1, 0)))
    if how == "changed" and data:
        data[at] = draw(st.integers(0, 255))
    elif how == "cut":
        del data[at:]
    elif how == "longer":
        data += draw(st.binary(min_size=1, max_size=20))
    return bytes(data)


records = st.lists(
    st.tuples(st.one_of(st.none(), bent(keys), st.binary(max_size=14)), st.one_of(st.none(), bent(values))), max_size=12
)


@given(records, st.sampled_from([OFFSETS, TRANSACTIONS]))
def test_what_is_read_by_columns_is_what_is_read_one_by_one(some, topic):
    by_columns = decoded(*some, topic=topic)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode, "offset_commits", lambda keys, values: (np.zeros(0, np.int64), {}))
        one_by_one = decoded(*some, topic=topic)
    assert by_columns == one_by_one


def rows_of(*some):
    """Which of (key, value) records are read by columns."""
    keys = pa.array([key for key, _ in some], pa.binary())
    rows, _ = offset_commits(keys, pa.array([value for _, value in some], pa.binary()))
    return rows.tolist()


KEY = encode_key(OffsetCommitKey("g", "orders", 2))


@pytest.mark.parametrize(
    "value",
    [
        None,
        encode_value(OffsetCommitValue(1)),
        encode_value(OffsetCommitValue(1, topic_id=UUID(int=7))),
        encode_value(OffsetCommitValue(1, metadata="mémoire")),
        encode_value(OffsetCommitValue(1, metadata="x" * 126, topic_id=UUID(int=7))),
    ],
)
def test_what_brokers_of_today_write_is_read_by_columns(value):
    assert rows_of((KEY, value), (b"\0", None), (KEY, value)) == [0, 2]


@pytest.mark.parametrize(
    "value",
    [
        encode_value(OffsetCommitValue(1, expire_timestamp_ms=5)),
        encode_value(OffsetCommitValue(1, metadata="x" * 127)),
        struct.pack(">hqih", 3, 1, 1, 0) + bytes(8),
    ],
)
def test_rarer_forms_are_left_to_the_other_decoders(value):
    assert rows_of((KEY, value)) == []


def test_a_slice_of_a_column_is_read_from_where_it_begins():
    values = [encode_value(OffsetCommitValue(number)) for number in range(5)]
    columns = pa.array([KEY] * 5, pa.binary()).slice(2, 2), pa.array(values, pa.binary()).slice(2, 2)
    _, read = offset_commits(*columns)
    assert read["committed_offset"].to_pylist() == [2, 3]
