import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.request_header.v1.header import RequestHeader as HeaderV1
from kio.schema.request_header.v2.header import RequestHeader as HeaderV2
from kio.serial import entity_writer

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.frames import read_request_header, skip_tagged_fields
from tests.cases import each_case

_client_ids = st.none() | st.text(max_size=40)


def _encoded(header) -> bytes:
    out = io.BytesIO()
    entity_writer(type(header))(out, header)
    return out.getvalue()


@given(st.integers(0, 92), st.integers(0, 18), st.integers(-(2**31), 2**31 - 1), _client_ids)
def test_a_header_without_tags_is_read_as_kio_wrote_it(api_key, version, correlation_id, client_id):
    frame = _encoded(
        HeaderV1(request_api_key=api_key, request_api_version=version, correlation_id=correlation_id, client_id=client_id)
    )
    assert read_request_header(frame + b"body") == (api_key, version, correlation_id, client_id, len(frame))


@given(_client_ids)
def test_a_flexible_header_ends_after_its_tags(client_id):
    frame = _encoded(HeaderV2(request_api_key=3, request_api_version=12, correlation_id=7, client_id=client_id))
    *_, position = read_request_header(frame)
    assert skip_tagged_fields(frame, position) == len(frame)


def test_unknown_tags_are_skipped():
    frame = b"\x02" + b"\x00\x03abc" + b"\x81\x01\x00" + b"rest"
    assert skip_tagged_fields(frame, 0) == len(frame) - len(b"rest")


@each_case(
    "frame",
    [
        b"",
        b"\x00\x12\x00\x00\x00\x00\x00",
        b"\x00\x12\x00\x00\x00\x00\x00\x07\xff\xfe",
        b"\x00\x12\x00\x00\x00\x00\x00\x07\x00\x05abc",
        b"\x00\x12\x00\x00\x00\x00\x00\x07\x00\x02\xff\xff",
    ],
)
def test_a_broken_header_is_malformed(frame):
    with pytest.raises(MalformedMessage):
        read_request_header(frame)


@each_case("tags", [b"", b"\x01", b"\x01\x00\x09abc", b"\xff\xff\xff\xff\xff\xff", b"\x01\x00\xff\xff\xff\xff\x0f"])
def test_broken_tags_are_malformed(tags):
    with pytest.raises(MalformedMessage):
        skip_tagged_fields(tags, 0)


def test_random_bytes_give_a_header_or_are_malformed():
    rng = random.Random(5)
    for _ in range(5000):
        frame = rng.randbytes(rng.randrange(60))
        try:
            *_, position = read_request_header(frame)
            skip_tagged_fields(frame, position)
        except MalformedMessage:
            pass
