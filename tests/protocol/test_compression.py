"""Every codec, in the framings that Kafka's clients use, and what is not one of them."""

import contextlib
import gzip
import random
import struct
import subprocess
import sys

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.compression import compress, decompress
from odradek.protocol.errors import MalformedMessage
from tests.cases import each_case

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
COMPRESSING = [1, 2, 3, 4]
# Larger than a snappy block and an lz4 block, part of it not compressible.
DATA = b"kafka" * 30_000 + random.Random(1).randbytes(50_000)


@each_case("codec", CODECS.values(), ids=CODECS)
@each_case("data", [b"", b"x", DATA], ids=["empty", "one byte", "200 kB"])
@each_case("kind", [bytes, bytearray, memoryview])
def test_what_was_compressed_comes_back(codec, data, kind):
    assert decompress(codec, kind(compress(codec, kind(data)))) == data


@given(codec=st.sampled_from(COMPRESSING), data=st.binary(max_size=5_000))
def test_any_data_comes_back(codec, data):
    assert decompress(codec, compress(codec, data)) == data


def test_a_raw_snappy_block_is_read_as_well_as_xerials_framing():
    assert decompress(2, bytes(cramjam.snappy.compress_raw(DATA))) == DATA
    assert compress(2, DATA).startswith(b"\x82SNAPPY\x00\0\0\0\1\0\0\0\1")


def test_gzip_is_read_in_several_members():
    assert decompress(1, gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"


def test_lz4_frames_have_independent_blocks_as_java_clients_want():
    frame = compress(3, DATA)

    assert frame[:4] == b"\x04\x22\x4d\x18"
    assert frame[4] & 0b1110_0000 == 0b0110_0000, "version 1, blocks independent"


@each_case("codec", [5, 6, 7, -1])
def test_an_unknown_codec_is_malformed_to_read_and_a_mistake_to_write(codec):
    with pytest.raises(MalformedMessage):
        decompress(codec, b"data")
    with pytest.raises(ValueError, match="compression"):
        compress(codec, b"data")


@each_case("codec", COMPRESSING)
@each_case("size", [100_000, 1_000_000])
def test_output_is_limited_exactly(codec, size):
    data = compress(codec, bytes(size))

    assert len(decompress(codec, data, size)) == size
    with pytest.raises(MalformedMessage):
        decompress(codec, data, size - 1)


def test_a_raw_snappy_block_is_limited_by_what_it_announces():
    with pytest.raises(MalformedMessage):
        decompress(2, bytes(cramjam.snappy.compress_raw(bytes(1_000_000))), 999_999)


@each_case("codec", COMPRESSING)
def test_a_bomb_takes_no_more_memory_than_the_limit(codec):
    # In a process of its own, whose peak is its own too.
    program = f"""
import resource
from odradek.protocol.compression import compress, decompress
from odradek.protocol.errors import MalformedMessage

decompress({codec}, compress({codec}, b"warm"))
small = compress({codec}, bytes(1 << 20))
bomb = small[:16] + small[16:] * 128 if {codec} == 2 else small * 128
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decompress({codec}, bomb, 8 << 20)
except MalformedMessage:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=50).stdout

    assert int(output) < 32 * 1024, "KiB, for a limit of 8 MiB and a bomb of 128"


@each_case("codec", COMPRESSING)
def test_cut_data_is_malformed(codec):
    data = compress(codec, DATA)

    for cut in (1, 3, 7, 15, 40, len(data) // 2, len(data) - 1):
        with pytest.raises(MalformedMessage):
            decompress(codec, data[:cut])


@each_case("length", [0, -1, 10, 2**31 - 1, -(2**31)])
def test_a_xerial_block_that_is_not_there_is_malformed(length):
    with pytest.raises(MalformedMessage):
        decompress(2, compress(2, b"")[:16] + struct.pack(">i", length) + b"\x01\x00x")


def test_a_snappy_block_that_announces_more_than_it_can_hold_is_malformed():
    with pytest.raises(MalformedMessage):
        decompress(2, b"\xff\xff\xff\x7f" + bytes(20))


@pytest.mark.parametrize("codec", COMPRESSING)
@given(data=st.data())
def test_damaged_data_is_malformed_or_read_but_never_anything_else(codec, data):
    damaged = bytearray(compress(codec, b"abcabcabc" * 40 + bytes(range(200))))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(MalformedMessage):
        decompress(codec, damaged, 1 << 20)


@pytest.mark.parametrize(
    ("codec", "weak", "strong"), [("gzip", 1, 9), ("lz4", 9, 17), ("zstd", -5, 22)], ids=["gzip", "lz4", "zstd"]
)
def test_levels_are_kafkas(codec, weak, strong):
    data = b"".join(number.to_bytes(2, "big") * (number % 7) for number in range(20_000))
    written = [compress(CODECS[codec], data, level) for level in (weak, strong)]
    assert len(written[0]) > len(written[1])
    assert [decompress(CODECS[codec], stream) for stream in written] == [data, data]


def test_gzips_default_level_is_its_own():
    assert compress(CODECS["gzip"], DATA, -1) == compress(CODECS["gzip"], DATA, 6)
