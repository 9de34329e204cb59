"""Records read by columns: row by row what is read of them one by one, whatever else is in the batch."""

import struct
import tracemalloc

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odradek.pipeline import decode
from odradek.protocol.varint import uvarint
from tests.pipeline.decoded import (
    ASSIGNMENT,
    KEY_OF_GROUP,
    KEY_OF_TRANSACTION,
    OFFSETS,
    TRANSACTIONS,
    batch_of,
    group,
    left_of,
    offset,
    rows_of,
    rows_one_by_one,
)
from tests.pipeline.record_bytes import records

# Null in the place of a topic's partitions, in either version.
NULL_PARTITIONS = [
    (TRANSACTIONS, KEY_OF_TRANSACTION, bytes(17) + b"\0\0\0\1" + b"\0\1t" + b"\xff\xff\xff\xff" + bytes(16)),
    (TRANSACTIONS, KEY_OF_TRANSACTION, b"\0\1" + bytes(15) + b"\2" + b"\2t" + b"\0" + b"\0" + bytes(16) + b"\0"),
]


@example(NULL_PARTITIONS)
@given(st.lists(records, max_size=12))
def test_what_is_read_by_columns_is_what_is_read_one_by_one(some):
    batch = batch_of(*some)
    assert rows_of(batch) == rows_one_by_one(batch)


@given(st.lists(records, max_size=8), st.integers(0, 8), st.integers(0, 8))
def test_a_slice_of_a_batch_is_read_from_where_it_begins(some, start, count):
    batch = batch_of(*some).slice(min(start, len(some)), count)
    assert rows_of(batch) == rows_one_by_one(batch)
    assert [row["offset"] for row in rows_of(batch)] == list(range(len(some)))[start : start + count]


def test_an_empty_batch_gives_no_rows_and_the_next_is_read():
    record = (OFFSETS, KEY_OF_GROUP, None)
    assert [row["group"] for row in rows_of(batch_of(), batch_of(record))] == ["g"]


@pytest.mark.parametrize("record", [(OFFSETS, None, None), (None, *group()[1:]), (OFFSETS, b"\0\x63", None)])
def test_what_is_of_no_kind_is_left_to_be_read_one_by_one(record):
    assert left_of(record) == [0]
    assert rows_of(batch_of(record)) == rows_one_by_one(batch_of(record))


def test_a_text_that_is_not_utf8_does_not_keep_other_kinds_from_columns():
    broken = (TRANSACTIONS, KEY_OF_TRANSACTION[:-1] + b"\xff", None)
    some = [broken, group(), offset()]
    assert left_of(*some) == [0]
    assert rows_of(batch_of(*some)) == rows_one_by_one(batch_of(*some))


def test_a_count_that_lies_takes_no_memory():
    head = struct.pack(">hqhib", 1, 9, 2, 60_000, 1)
    most = uvarint(0x3FFF)
    partitions = (TRANSACTIONS, KEY_OF_TRANSACTION, head + b"\2\2t" + most + bytes(17))
    topics = (TRANSACTIONS, KEY_OF_TRANSACTION, head + most + bytes(17))
    value = group()[2]
    count_at = value.index(b"\0\0\0\1\0\3m-0")
    some_members = (OFFSETS, KEY_OF_GROUP, value[:count_at] + b"\x7f\xff\xff\xff" + value[count_at + 4 :])
    an_assignment = (OFFSETS, KEY_OF_GROUP, value[: -len(ASSIGNMENT) - 4] + b"\x7f\xff\xff\xff" + ASSIGNMENT)
    some = [partitions, topics, some_members, an_assignment] * 100
    batch = batch_of(*some)
    tracemalloc.start()
    try:
        before = pa.total_allocated_bytes()
        rows = sum(found.num_rows for found in decode.decode_batches(iter([batch])))
        _, peak = tracemalloc.get_traced_memory()
        assert (rows, pa.total_allocated_bytes() - before) == (len(some), 0)
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000
