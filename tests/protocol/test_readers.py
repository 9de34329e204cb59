"""The compiled readers make of a request what kio makes of it, and nothing of one that lies."""

import random
import struct

import pytest
from kio.serial import entity_reader

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.messages import load, messages
from odradek.protocol.readers import compile_reader
from odradek.protocol.varint import uvarint
from tests import kio_schemas
from tests.cases import case, each_case
from tests.protocol.kio_messages import encoded, every_api, fields_of, known_versions, same_fields
from tests.protocol.random_messages import random_message

MANY = (2**31 - 1).to_bytes(4, "big")
MANY_COMPACT = b"\xff\xff\xff\xff\x0f"


def reader(api_key, version):
    return compile_reader(load(api_key, version, "request"), messages(api_key).classes["request"])


@every_api
def test_every_request_is_read_as_kio_reads_it_and_to_the_same_byte(api_key):
    for version in known_versions(api_key, "request"):
        read = reader(api_key, version)
        entity = kio_schemas.load(api_key, version, "request")
        rng = random.Random(f"{api_key}-{version}")
        with case(f"v{version}"):
            for _ in range(20):
                frame = b"head" + encoded(random_message(entity, rng)) + b"tail"
                kios, size = entity_reader(entity)(frame, 4)
                ours, position = read(frame, 4)
                assert position == 4 + size
                expected = fields_of(kios)
                assert same_fields(ours, expected) == expected
                # Every field of the canonical class is there, whatever the version.
                assert type(ours) is messages(api_key).request
                assert len(ours) == len(ours._fields)


def test_what_a_version_does_not_say_is_the_default():
    request, _ = reader(ApiKey.JOIN_GROUP, 0)(b"\0\1g" + struct.pack(">i", 7_000) + b"\0\0\0\1c" + b"\0\0\0\0", 0)

    assert (request.group_id, request.session_timeout_ms, request.protocol_type, request.protocols) == ("g", 7_000, "c", ())
    assert (request.group_instance_id, request.reason) == (None, None)


def test_unknown_tagged_fields_are_skipped():
    fields = b"\2g" + struct.pack(">i", 3) + b"\2m" + b"\0"
    tagged = b"\2" + b"\3\5abcde" + uvarint(900) + b"\1x"

    request, position = reader(ApiKey.HEARTBEAT, 4)(fields + tagged, 0)

    assert (request.group_id, request.generation_id, request.member_id) == ("g", 3, "m")
    assert position == len(fields + tagged)


@each_case(
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
    with pytest.raises(MalformedMessage):
        reader(api_key, version)(b"head" + body, 4)


@pytest.mark.parametrize("version", [3, 9])
def test_null_for_an_array_that_may_not_be_is_malformed(version):
    body = struct.pack(">hhii", -1, 1, 5, -1) if version == 3 else b"\0" + struct.pack(">hi", 1, 5) + b"\0\0"

    with pytest.raises(MalformedMessage, match="is null"):
        reader(ApiKey.PRODUCE, version)(body, 0)


def test_null_for_a_string_that_may_not_be_is_malformed():
    with pytest.raises(MalformedMessage, match="group_id is null"):
        reader(ApiKey.HEARTBEAT, 4)(b"\0" + bytes(20), 0)


def test_null_for_an_array_that_may_be_is_none():
    request, _ = reader(ApiKey.METADATA, 1)(b"\xff\xff\xff\xff", 0)

    assert request.topics is None


def fetch_with_high_watermark(size):
    """A Fetch v18 body with one partition and, tagged, a high watermark of eight bytes, said to be of ``size``."""
    partition = struct.pack(">iiqiqi", 0, -1, 0, -1, -1, 1_000) + b"\x01\x01" + bytes([size]) + bytes(8)
    topics = b"\x02" + bytes(16) + b"\x02" + partition + b"\0"
    return struct.pack(">iiibii", 500, 1, 1_000, 0, 0, -1) + topics + b"\x01\x01\0"


@each_case("size", [0, 7, 9, 100])
def test_a_tagged_field_of_another_size_than_it_says_is_malformed(size):
    read = reader(ApiKey.FETCH, 18)

    read(fetch_with_high_watermark(8), 0)
    with pytest.raises(MalformedMessage):
        read(fetch_with_high_watermark(size), 0)


def test_a_string_that_is_not_utf_8_is_malformed():
    with pytest.raises(MalformedMessage, match="UTF-8"):
        reader(ApiKey.HEARTBEAT, 4)(b"\2\xff" + bytes(20), 0)
