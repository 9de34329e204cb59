import tracemalloc

import pytest

from odradek.storage.cleaning.record_spans import OffsetMap, RecordSpan


def span(delta, key):
    return RecordSpan(delta, key, True, 0, 2, 10)


def spans_of(*keys):
    return [span(delta, key) for delta, key in enumerate(keys)]


def test_the_last_offset_of_a_key_is_kept_and_no_other_is_known():
    offsets = OffsetMap(10_000, 1.0)
    assert offsets.latest_offset == -1
    assert offsets.put_all(10, spans_of(b"a", b"b", b"a"), 0)
    assert (offsets.get(b"a"), offsets.get(b"b"), offsets.get(b"c")) == (12, 11, -1)
    assert offsets.latest_offset == 12


def test_keys_longer_than_what_is_kept_plain_are_told_apart_to_their_last_byte():
    offsets = OffsetMap(10_000, 1.0)
    offsets.put_all(0, spans_of(*(b"x" * 1000 + bytes([last]) for last in range(5)), b"x" * 63, b"x" * 64), 0)
    assert [offsets.get(b"x" * 1000 + bytes([last])) for last in range(5)] == list(range(5))
    assert (offsets.get(b"x" * 63), offsets.get(b"x" * 64)) == (5, 6)


def test_records_without_a_key_and_those_below_the_dirty_offset_are_passed_over():
    offsets = OffsetMap(10_000, 1.0)
    offsets.put_all(0, spans_of(b"a", None, b"b"), 1)
    assert len(offsets) == 1
    assert offsets.get(b"b") == 2


def test_when_it_is_full_it_says_so_and_knows_how_far_it_got():
    offsets = OffsetMap(1000, 1.0)
    assert not offsets.put_all(0, spans_of(*(b"%d" % number for number in range(100))), 0)
    assert 2 <= len(offsets) <= 10
    assert offsets.latest_offset == len(offsets) - 1
    assert not offsets.put_all(50, spans_of(b"0"), 0)


def test_one_key_always_fits():
    offsets = OffsetMap(0, 0.9)
    assert not offsets.put_all(0, spans_of(b"a", b"b"), 0)
    assert offsets.latest_offset == 0


@pytest.mark.parametrize("length", [4, 24, 60, 200])
def test_it_takes_no_more_memory_than_it_may(length):
    memory_bytes = 4 << 20
    tracemalloc.start()
    try:
        offsets = OffsetMap(memory_bytes, 1.0)
        number = 0
        while offsets.put_all(2**40 + number, [span(0, b"%0*d" % (length, number))], 0):
            number += 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert memory_bytes / 4 < peak <= memory_bytes * 1.1
