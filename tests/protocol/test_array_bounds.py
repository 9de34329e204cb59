"""The walk over a request's arrays goes where kio goes, and lets no impossible count pass."""

import io
import random
import struct

import pytest
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.array_bounds import _compile, _Source, compile_array_check
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.requests import decode_request
from odradek.protocol.schemas import load
from tests.protocol.random_messages import random_message

EVERY_REQUEST = [
    pytest.param(key, version, id=f"{key.name}-v{version}") for key in ApiKey for version in schema_name_map[key.name.lower()]
]
MANY = (2**31 - 1).to_bytes(4, "big")
MANY_COMPACT = b"\xff\xff\xff\xff\x0f"


@pytest.mark.parametrize(("api_key", "version"), EVERY_REQUEST)
def test_a_valid_request_is_walked_to_the_byte_where_kio_ends_and_passes(api_key, version):
    entity = load(api_key, version, "request")
    walk = _compile(_Source().struct(entity, more=True))
    check = compile_array_check(entity)
    rng = random.Random(f"{api_key}-{version}")
    for _ in range(10):
        body = io.BytesIO()
        entity_writer(entity)(body, random_message(entity, rng))
        frame = b"head" + body.getvalue()

        assert walk(frame, 4, len(frame)) == len(frame)
        assert entity_reader(entity)(frame, 4)[1] == len(frame) - 4
        if check is not None:
            check(frame, 4)


@pytest.mark.parametrize(
    ("api_key", "version", "body"),
    [
        (ApiKey.METADATA, 1, MANY),
        (ApiKey.METADATA, 1, b"\0\0\0\3\0\1"),
        (ApiKey.METADATA, 12, MANY_COMPACT),
        (ApiKey.METADATA, 12, b"\xff\xff\xff\xff\x7f"),
        (ApiKey.METADATA, 12, b"\xff" * 9),
        (ApiKey.METADATA, 12, b"\x04\0\0"),
        (ApiKey.PRODUCE, 3, struct.pack(">hhi", -1, 1, 5) + MANY),
        (ApiKey.PRODUCE, 3, struct.pack(">hhiih1s", -1, 1, 5, 1, 1, b"t") + MANY),
        (ApiKey.PRODUCE, 9, struct.pack(">bhib2s", 0, 1, 5, 2, b"\x02t") + MANY_COMPACT),
        (ApiKey.PRODUCE, 9, struct.pack(">bhib2sb", 0, 1, 5, 3, b"\x02t", 1) + b"\1\0\3abc" + b"\x02t" + MANY_COMPACT),
        (ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, MANY_COMPACT),
    ],
)
def test_an_array_longer_than_the_bytes_behind_it_is_malformed(api_key, version, body):
    check = compile_array_check(load(api_key, version, "request"))

    assert check is not None
    with pytest.raises(MalformedMessage):
        check(b"head" + body, 4)


@pytest.mark.parametrize(("api_key", "version"), [(ApiKey.PRODUCE, 3), (ApiKey.PRODUCE, 9)])
def test_null_for_an_array_that_may_not_be_is_malformed(api_key, version):
    body = struct.pack(">hhii", -1, 1, 5, -1) if version == 3 else b"\0" + struct.pack(">hi", 1, 5) + b"\0\0"

    with pytest.raises(MalformedMessage, match="array"):
        decode_request(api_key, version, b"\0" + body, 0 if version == 9 else 1)


def test_null_for_an_array_that_may_be_passes():
    check = compile_array_check(load(ApiKey.METADATA, 1, "request"))

    assert check is not None
    check(b"\xff\xff\xff\xff", 0)


def fetch_with_high_watermark(size):
    """A Fetch v18 body with one partition and, tagged, a high watermark of eight bytes, said to be of ``size``."""
    partition = struct.pack(">iiqiqi", 0, -1, 0, -1, -1, 1_000) + b"\x01\x01" + bytes([size]) + bytes(8)
    topics = b"\x02" + bytes(16) + b"\x02" + partition + b"\0"
    return struct.pack(">iiibii", 500, 1, 1_000, 0, 0, -1) + topics + b"\x01\x01\0"


@pytest.mark.parametrize("size", [0, 7, 9, 100])
def test_a_tagged_field_of_another_size_than_it_says_is_malformed(size):
    # kio goes by the value, so a size that differs would let the two part ways, and a count hide between them.
    check = compile_array_check(load(ApiKey.FETCH, 18, "request"))

    assert check is not None
    check(fetch_with_high_watermark(8), 0)
    with pytest.raises(MalformedMessage, match="tagged field 1"):
        check(fetch_with_high_watermark(size), 0)


@pytest.mark.parametrize("version", [1, 12])
def test_a_request_cut_anywhere_is_malformed(version):
    entity = load(ApiKey.METADATA, version, "request")
    body = io.BytesIO()
    entity_writer(entity)(body, random_message(entity, random.Random(4)))
    frame = (b"\0" if version == 12 else b"") + body.getvalue()

    for end in range(len(frame)):
        with pytest.raises(MalformedMessage):
            decode_request(ApiKey.METADATA, version, frame[:end], 0)


def test_a_request_without_arrays_needs_no_check():
    assert compile_array_check(load(ApiKey.HEARTBEAT, 4, "request")) is None
