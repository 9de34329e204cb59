import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.pipeline import kinds as for_columns
from odradek.protocol.coordinator_records.consumer_protocol import (
    Subscription,
    assigned_partitions,
    assigned_user_data,
    encode_assignment,
    read_subscription,
    subscribed_topics,
    version_of,
)
from odradek.protocol.errors import MalformedMessage
from tests.cases import each_case

_VERSIONS = st.integers(0, 3)
_REST = st.binary(max_size=20)
_TEXT = st.text(max_size=20)
_ASSIGNED = st.lists(st.tuples(_TEXT, st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5)), max_size=5)


def _string(text):
    return len(text.encode()).to_bytes(2) + text.encode()


def _subscription(topics, version=1, rest=b""):
    return version.to_bytes(2) + len(topics).to_bytes(4) + b"".join(map(_string, topics)) + rest


def _assignment(assigned, version=1, rest=b""):
    body = b"".join(
        _string(topic) + len(partitions).to_bytes(4) + b"".join(partition.to_bytes(4, signed=True) for partition in partitions)
        for topic, partitions in assigned
    )
    return version.to_bytes(2) + len(assigned).to_bytes(4) + body + rest


@given(st.lists(_TEXT), _VERSIONS, _REST)
def test_the_topics_are_read_whatever_follows_them(topics, version, rest):
    assert subscribed_topics(_subscription(topics, version, rest)) == topics


@given(_ASSIGNED, _VERSIONS, _REST)
def test_the_partitions_are_read_whatever_follows_them(assigned, version, rest):
    assert assigned_partitions(_assignment(assigned, version, rest)) == assigned


def test_no_bytes_assign_nothing():
    assert assigned_partitions(b"") == []


def _user_data(data):
    return (-1).to_bytes(4, signed=True) if data is None else len(data).to_bytes(4) + data


@given(st.lists(_TEXT), _ASSIGNED, st.none() | st.binary(max_size=9), st.none() | _TEXT)
@pytest.mark.parametrize("version", range(5))
def test_a_subscription_is_read_whole_in_every_version(version, topics, owned, user_data, rack_id):
    rest = _user_data(user_data)
    rest += _assignment(owned)[2:] if version > 0 else b""
    rest += (7).to_bytes(4) if version > 1 else b""
    if version > 2:
        rest += (-1).to_bytes(2, signed=True) if rack_id is None else _string(rack_id)
    told = Subscription(version, topics, user_data or b"", owned if version > 0 else [], rack_id if version > 2 else None)
    assert read_subscription(_subscription(topics, version, rest)) == told


@given(_ASSIGNED, st.integers(0, 9))
def test_an_assignment_is_read_as_it_was_written_in_a_version_that_is_known(assigned, version):
    data = encode_assignment(version, assigned)
    assert assigned_partitions(data) == assigned
    assert assigned_user_data(data) == b""
    assert version_of(data) == min(version, 3)


@given(_ASSIGNED, st.binary(max_size=9))
def test_user_data_of_an_assignment_is_told_from_partitions(assigned, user_data):
    assert assigned_user_data(_assignment(assigned, rest=_user_data(user_data))) == user_data


def test_bytes_without_a_version_are_of_the_first():
    assert version_of(b"\1") == version_of(b"\xff\xff") == 0


@pytest.mark.parametrize("read", [subscribed_topics, assigned_partitions, read_subscription, assigned_user_data])
@given(data=st.binary(max_size=60))
def test_any_bytes_give_topics_or_the_one_error(read, data):
    try:
        topics = read(data)
    except MalformedMessage:
        return
    assert isinstance(topics, list | tuple | bytes)


NEITHER = [
    b"\0\0\0\0\0",
    b"\xff\xff\0\0\0\0",
    b"\0\0\xff\xff\xff\xff",
    b"\0\0\x7f\xff\xff\xff",
    b"\0\0\0\0\0\1",
    b"\0\0\0\0\0\1\0\5abc",
    b"\0\0\0\0\0\1\xff\xff",
    b"\0\0\0\0\0\1\xff\xfe",
    b"\0\0\0\0\0\1\0\1\xff",
]
NO_ASSIGNMENT = [
    b"\0\0\0\0\0\1\0\1a",
    b"\0\0\0\0\0\1\0\1a\0\0\0\2\0\0\0\7",
    b"\0\0\0\0\0\1\0\1a\xff\xff\xff\xff",
    b"\0\0\0\0\0\1\xff\xff\0\0\0\0",
]


@each_case(
    ("read", "for_column", "data"),
    [
        *((subscribed_topics, for_columns.subscribed_topics, data) for data in (b"", *NEITHER)),
        *((assigned_partitions, for_columns.assigned_partitions, data) for data in (*NEITHER, *NO_ASSIGNMENT)),
    ],
)
def test_what_is_something_else_is_refused_and_null_in_columns(read, for_column, data):
    with pytest.raises(MalformedMessage):
        read(data)
    assert for_column(data) is None


def test_columns_have_topics_with_their_partitions():
    data = _assignment([("a", [0, 2]), ("b", [])])
    assert for_columns.assigned_partitions(data) == [{"topic": "a", "partitions": [0, 2]}, {"topic": "b", "partitions": []}]
    assert for_columns.subscribed_topics(_subscription(["a", "b"])) == ["a", "b"]
