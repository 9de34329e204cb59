"""Offset commits: the forms that are read by columns, and those that are left to be read one by one."""

import struct
from uuid import UUID

from tests.cases import each_case
from tests.pipeline.decoded import BROKEN, KEY_OF_OFFSET, OFFSETS, batch_of, left_of, offset, rows_of, rows_one_by_one
from tests.pipeline.record_bytes import older_offset_value


def older(version):
    """An offset in one of the versions from 0 to 3."""
    return OFFSETS, KEY_OF_OFFSET, older_offset_value(version, 42, 3, "mémoire", 7, 9)


@each_case(
    "record",
    [
        (OFFSETS, KEY_OF_OFFSET, None),
        (OFFSETS, b"\0\0" + KEY_OF_OFFSET[2:], None),
        offset(),
        offset(topic_id=UUID(int=7)),
        offset(topic_id=UUID(int=0)),
        offset(metadata="mémoire"),
        offset(metadata="x" * 4096, topic_id=UUID(int=7)),
        offset(expire_timestamp_ms=5),
        older(0),
        older(1),
        older(2),
        older(3),
    ],
)
def test_what_brokers_write_is_read_by_columns(record):
    assert left_of(record, BROKEN, record) == [1]
    assert rows_of(batch_of(record)) == rows_one_by_one(batch_of(record))


@each_case(
    "record",
    [
        (OFFSETS, KEY_OF_OFFSET, b"\0\5" + offset()[2][2:]),
        (OFFSETS, KEY_OF_OFFSET, b"\0\3" + older(2)[2][2:]),
        (OFFSETS, KEY_OF_OFFSET, older(0)[2] + b"\0"),
        (OFFSETS, KEY_OF_OFFSET, struct.pack(">hqh", 0, 1, -1) + bytes(8)),  # null metadata
        (OFFSETS, KEY_OF_OFFSET, struct.pack(">hqiBqB", 4, 1, 1, 0, 0, 0)),  # null metadata
        (OFFSETS, KEY_OF_OFFSET, offset()[2][:-1] + b"\1\1\0"),  # a tagged field that is not known
        (OFFSETS, KEY_OF_OFFSET, offset()[2] + b"\0"),
        (OFFSETS, KEY_OF_OFFSET + b"\0", None),
        (OFFSETS, KEY_OF_OFFSET[:4] + b"\xff" + KEY_OF_OFFSET[5:], None),
    ],
)
def test_other_forms_are_left_and_nothing_of_them_is_lost(record):
    assert left_of(record) == [0]
    assert rows_of(batch_of(record)) == rows_one_by_one(batch_of(record))


def test_a_tombstone_among_values_has_none_of_theirs():
    rows = rows_of(batch_of(offset(metadata="a"), (OFFSETS, KEY_OF_OFFSET, None), offset(metadata="b", topic_id=UUID(int=5))))
    assert [(row["metadata"], row["topic_id"], row["is_tombstone"]) for row in rows] == [
        ("a", None, False),
        (None, None, True),
        ("b", "AAAAAAAAAAAAAAAAAAAABQ", False),
    ]


def test_each_version_says_what_it_has():
    rows = rows_of(batch_of(*map(older, range(4)), offset(metadata="m")))
    told = [(row["value_version"], row["leader_epoch"], row["metadata"], row["expire_timestamp_ms"]) for row in rows]
    assert told == [(0, -1, "mémoire", -1), (1, -1, "mémoire", 9), (2, -1, "mémoire", -1), (3, 3, "mémoire", -1), (4, 3, "m", -1)]
