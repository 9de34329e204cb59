"""Generations of classic groups: the forms that are read by columns, and those that are left to be read one by one."""

from tests.cases import each_case
from tests.pipeline.decoded import (
    ASSIGNMENT,
    BROKEN,
    KEY_OF_GROUP,
    OFFSETS,
    SUBSCRIPTION,
    TRANSACTIONS,
    batch_of,
    group,
    left_of,
    rows_of,
    rows_one_by_one,
)


def older(version, count=2):
    """A group in one of the versions from 0 to 2."""
    string = b"\0\1x"
    timeouts = bytes(range(8 if version else 4))
    member = string * 3 + timeouts + b"".join(len(data).to_bytes(4) + data for data in (SUBSCRIPTION, ASSIGNMENT))
    at = bytes(range(8)) if version == 2 else b""
    head = version.to_bytes(2) + b"\0\x08consumer" + bytes(4) + string * 2 + at
    return OFFSETS, KEY_OF_GROUP, head + count.to_bytes(4) + member * count


@each_case(
    "record",
    [
        (OFFSETS, KEY_OF_GROUP, None),
        group(),
        group(0, "", None, None),
        group(3, "connect"),
        group(128),
        (OFFSETS, KEY_OF_GROUP, group(0)[2][:-1] + b"\1" + bytes(24)),  # a member that says nothing
        older(0),
        older(1),
        older(2),
        (OFFSETS, KEY_OF_GROUP, older(0, 0)[2][:-1] + b"\1" + bytes(18)),
    ],
)
def test_what_brokers_write_is_read_by_columns(record):
    assert left_of(record, BROKEN, record) == [1]
    assert rows_of(batch_of(record)) == rows_one_by_one(batch_of(record))


@each_case(
    "record",
    [
        group(129),
        (OFFSETS, KEY_OF_GROUP, group()[2].replace(b"\0\x06client", b"\xff\xff")),
        (OFFSETS, KEY_OF_GROUP, b"\0\2" + group()[2][2:]),
        (OFFSETS, KEY_OF_GROUP, b"\0\4" + bytes(16)),
        (OFFSETS, KEY_OF_GROUP, group()[2] + b"\0"),
        (OFFSETS, KEY_OF_GROUP, group()[2][:-1]),
        (OFFSETS, KEY_OF_GROUP, b"\0\3\xff\xff" + bytes(20)),  # a null protocol type
        (OFFSETS, KEY_OF_GROUP + b"\0", None),
        (TRANSACTIONS, KEY_OF_GROUP, None),
    ],
)
def test_other_forms_are_left_and_nothing_of_them_is_lost(record):
    assert left_of(record) == [0]
    assert rows_of(batch_of(record)) == rows_one_by_one(batch_of(record))


def test_members_are_in_the_order_of_their_groups_and_of_the_record():
    groups = [group(2), (OFFSETS, KEY_OF_GROUP, None), group(0), group(3, "connect"), group(1)]
    assert left_of(*groups) == []
    found = [row["members"] for row in rows_of(batch_of(*groups))]
    assert [members and [each["member_id"] for each in members] for members in found] == [
        ["m-0", "m-1"],
        None,
        [],
        ["m-0", "m-1", "m-2"],
        ["m-0"],
    ]
    assert [[each["topics"] for each in members] for members in found if members] == [[["a", "b"]] * 2, [None] * 3, [["a", "b"]]]
