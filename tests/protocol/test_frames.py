from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.frames import MIN_FRAME_BYTES, FrameReader

_bodies = st.lists(st.binary(min_size=MIN_FRAME_BYTES, max_size=300), max_size=12)


def _framed(bodies: list[bytes]) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def _fed(reader, stream, cuts):
    """The frames that a reader finds in a stream that is fed in cuts of these sizes, over and over."""
    frames = []
    position = 0
    sizes = cycle(cuts)
    while position < len(stream):
        size = next(sizes)
        frames += reader.feed(stream[position : position + size])
        position += size
    return frames


@given(_bodies, st.lists(st.integers(1, 400), min_size=1, max_size=50))
def test_frames_come_out_whole_and_in_order_however_the_stream_is_cut(bodies, cuts):
    reader = FrameReader(1024)
    assert _fed(reader, _framed(bodies), cuts) == bodies
    assert reader.buffered_bytes == 0


@given(st.binary(max_size=40))
def test_an_incomplete_frame_stays_inside(tail):
    reader = FrameReader(1024)
    assert reader.feed((100).to_bytes(4, "big") + tail) == []
    assert reader.buffered_bytes == 4 + len(tail)


@pytest.mark.parametrize("length", [-1, -(2**31), 0, MIN_FRAME_BYTES - 1, 1025, 2**31 - 1])
def test_a_length_outside_the_limits_is_malformed(length):
    with pytest.raises(MalformedMessage, match=r"socket\.request\.max\.bytes"):
        FrameReader(1024).feed(length.to_bytes(4, "big", signed=True))


def test_a_frame_of_the_largest_size_passes():
    body = bytes(1024)
    assert FrameReader(1024).feed(_framed([body])) == [body]


def test_a_claimed_length_takes_no_memory_before_its_bytes_come():
    reader = FrameReader(100 * 1024 * 1024)
    reader.feed((100 * 1024 * 1024).to_bytes(4, "big"))
    assert len(reader.writable()) <= 256 * 1024


@pytest.mark.parametrize("size", [300_000, 8_000_000])
def test_a_quiet_connection_gives_back_what_large_frames_took(size):
    reader = FrameReader(16 * 1024 * 1024)
    body = bytes(size)
    assert reader.feed(_framed([body])) == [body]
    reader.trim()
    assert reader.allocated_bytes <= 4096


def test_trimming_loses_nothing_that_has_come():
    reader = FrameReader(1024 * 1024)
    body = bytes(range(256)) * 1000
    assert reader.feed(_framed([body])[:-1]) == []
    reader.trim()
    assert reader.feed(_framed([body])[-1:]) == [body]


def test_a_frame_of_extraordinary_size_takes_its_memory_along():
    reader = FrameReader(64 * 1024 * 1024)
    reader.feed(_framed([bytes(40_000_000)]))
    assert reader.allocated_bytes <= 64 * 1024


def test_a_large_frame_is_not_copied():
    reader = FrameReader(1024 * 1024)
    stream = _framed([b"x" * 100_000])
    frames = []
    position = 0
    while position < len(stream):
        room = reader.writable()
        chunk = stream[position : position + len(room)]
        room[: len(chunk)] = chunk
        frames = reader.filled(len(chunk))
        position += len(chunk)
    (frame,) = frames
    assert isinstance(frame, memoryview)
    assert bytes(frame) == stream[4:]


def test_a_frame_taken_stays_as_it_was_while_the_stream_goes_on():
    reader = FrameReader(1024)
    (first,) = reader.feed(_framed([b"a" * 50]))
    reader.feed(_framed([b"b" * 50]))
    assert first == b"a" * 50


def test_a_buffer_grows_when_it_is_full_and_not_with_each_read():
    reader = FrameReader(100 * 1024 * 1024)
    reader.feed((90_000_000).to_bytes(4, "big"))
    sizes = set()
    for _ in range(20_000):
        reader.feed(b"x")
        sizes.add(reader.allocated_bytes)
    assert max(sizes) == 64 * 1024


def test_the_size_of_the_buffer_is_told_before_it_grows():
    reader = FrameReader(100 * 1024 * 1024)
    stream = _framed([bytes(9), bytes(40_000), bytes(40_000_000), bytes(10)])
    position = 0
    while position < len(stream):
        told = reader.wanted_bytes
        room = reader.writable()
        assert reader.allocated_bytes == told
        assert 0 < len(room) <= 1024 * 1024
        chunk = stream[position : position + len(room)]
        room[: len(chunk)] = chunk
        reader.filled(len(chunk))
        position += len(chunk)


@given(st.lists(st.integers(MIN_FRAME_BYTES, 200_000), max_size=6), st.lists(st.integers(1, 100_000), min_size=1, max_size=20))
def test_large_frames_come_out_whole_however_the_stream_is_cut(sizes, cuts):
    reader = FrameReader(1024 * 1024)
    bodies = [bytes([index]) * size for index, size in enumerate(sizes)]
    assert _fed(reader, _framed(bodies), cuts) == bodies


def test_a_buffer_takes_twice_what_has_come_at_most():
    reader = FrameReader(100 * 1024 * 1024)
    reader.feed((90_000_000).to_bytes(4, "big"))
    came = 4
    while came < 8_000_000:
        reader.feed(bytes(10_000))
        came += 10_000
        assert reader.allocated_bytes <= max(64 * 1024, 2 * came + 64 * 1024)


def test_of_very_many_frames_the_first_are_returned_and_the_rest_when_asked_for():
    reader = FrameReader(1024)
    bodies = [b"%08d" % number for number in range(300)]
    stream = _framed(bodies) + b"\0\0"
    reader.writable()[: len(stream)] = stream
    frames = reader.filled(len(stream))
    assert 0 < len(frames) < 200
    assert reader.has_more
    while reader.has_more:
        frames += reader.filled(0)
    assert frames == bodies
    assert reader.buffered_bytes == 2
    assert reader.filled(0) == []
