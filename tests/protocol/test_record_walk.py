"""A walk sees what a reader that builds records sees, and refuses what that refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.record_batch import HEADER_SIZE, read_header
from odradek.protocol.record_walk import RecordWalk
from odradek.protocol.records import Record, build_batch, read_records

_timestamps = st.integers(-1, 2**41)
_ascii = st.text(st.characters(max_codepoint=127), max_size=200)
_records = st.lists(
    st.builds(
        Record,
        offset=st.just(-1),
        timestamp=_timestamps,
        key=st.none() | st.binary(max_size=200),
        value=st.none() | st.binary(max_size=200),
        headers=st.lists(st.tuples(_ascii, st.none() | st.binary(max_size=20)), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=20,
)


def walked(batch, step=1_000_000, **wanted):
    """A walk over ``batch`` to its end, so many records at a time."""
    walk = RecordWalk(read_header(batch), memoryview(batch)[HEADER_SIZE:], **wanted)
    while not walk.is_done:
        walk.go_on(step)
    return walk


@given(_records, _timestamps, _timestamps, st.booleans(), st.integers(1, 5))
def test_a_walk_refuses_the_records_that_are_out_of_bounds(records, earliest, latest, wants_key, step):
    walk = walked(build_batch(records), step, wants_key=wants_key, earliest=earliest, latest=latest, most_refused=1000)

    assert walk.refused == [
        (index, record.timestamp, record.key is not None, index)
        for index, record in enumerate(records)
        if (wants_key and record.key is None) or (record.timestamp != -1 and not earliest <= record.timestamp <= latest)
    ]
    assert walk.max_timestamp == max(record.timestamp for record in records)


@given(_records, st.data())
def test_a_walk_finds_malformed_what_a_reader_does(records, data):
    batch = bytearray(build_batch(records))
    batch[data.draw(st.integers(HEADER_SIZE, len(batch) - 1))] = data.draw(st.integers(0, 255))
    try:
        expected = [record.timestamp for record in read_records(batch)]
    except MalformedMessage as error:
        # Kafka's broker does not look at the text of keys.
        expected = None if "UTF-8" not in error.reason else "any"
    try:
        found = walked(batch, 3, latest=-(2**63), most_refused=1000).refused
    except MalformedMessage:
        found = None

    if expected != "any":
        told = None if expected is None else [timestamp for timestamp in expected if timestamp != -1 and timestamp > -(2**63)]
        assert (None if found is None else [timestamp for _, timestamp, *_ in found]) == told


@pytest.mark.parametrize("sizes", [[300_000] * 3, [131_072 - 10, 131_072, 131_072 + 10, 5], [1, 1_000_000, 1]])
def test_records_larger_than_a_piece_of_the_data_are_walked_over(sizes):
    records = [Record(timestamp=index, value=bytes(size)) for index, size in enumerate(sizes)]

    walk = walked(build_batch(records), 1, latest=-1, most_refused=1000)

    assert [index for index, *_ in walk.refused] == list(range(len(sizes)))


def test_every_cut_between_two_pieces_is_walked_over():
    batch = build_batch([Record(timestamp=index, value=bytes(index % 150)) for index in range(10_000)])

    assert walked(batch, 7).max_timestamp == 9_999


def test_a_walk_ends_where_enough_are_refused():
    walk = walked(build_batch([Record(timestamp=1)] * 50), wants_key=True, most_refused=3)

    assert walk.refused == [(0, 1, False, 0), (1, 1, False, 1), (2, 1, False, 2)]


@pytest.mark.parametrize("count", [-1, 2, 2**31 - 1])
def test_a_wrong_count_is_malformed(count):
    batch = build_batch([Record(timestamp=1)])
    with pytest.raises(MalformedMessage):
        RecordWalk(read_header(batch)._replace(record_count=count), batch[HEADER_SIZE:])


def test_records_in_front_of_an_offset_are_not_judged():
    records = [Record(offset=offset, timestamp=1) for offset in (100, 103, 104, 200)]
    walk = walked(build_batch(records, base_offset=100), latest=0, first_offset_delta=4)

    assert walk.refused == [(2, 1, False, 4)]


def test_a_walk_pauses_within_a_record_of_many_headers():
    batch = build_batch([Record(key=b"k", headers=(("h", b""),) * 10_000, timestamp=0)])
    paused = []
    assert walked(batch, pause=lambda: paused.append(None)).is_done
    assert len(paused) >= 4


def test_headers_count_as_records_do():
    batch = build_batch([Record(key=b"k", headers=(("h", b""),) * 99, timestamp=0)] * 50)
    walk = RecordWalk(read_header(batch), batch[HEADER_SIZE:])
    steps = 0
    while not walk.is_done:
        walk.go_on(1_000)
        steps += 1
    assert steps == 5
