"""The Produce reader of our own against kio's writers."""

import contextlib
import random

import pytest
from kio.schema.produce.v13.request import ProduceRequest as KioV13

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import request_decoder
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.produce_request import FIRST_FLEXIBLE
from odradek.protocol.varint import uvarint
from tests.cases import each_case
from tests.kio_schemas import MILLISECOND, load
from tests.protocol.random_messages import random_message
from tests.protocol.test_requests import encode

_VERSIONS = range(3, 14)


def _read(body, version):
    """The request as dispatch reads it: a small one of one batch has a reader of its own."""
    tags = b"\0" if version >= FIRST_FLEXIBLE else b""
    frame = tags + bytes(body)
    return request_decoder(ApiKey.PRODUCE, version)(frame if isinstance(body, bytes) else memoryview(frame), 0)


def _body(message) -> bytes:
    return encode(message)[1 if type(message).__flexible__ else 0 :]


def _kio_topics(message):
    for topic in message.topic_data:
        key = (topic.topic_id.bytes if topic.topic_id else bytes(16)) if isinstance(message, KioV13) else topic.name
        yield key, [(data.index, data.records) for data in topic.partition_data]


@each_case("as_view", [False, True])
@each_case("version", _VERSIONS)
def test_what_kio_writes_is_read(version, as_view):
    rng = random.Random(version)
    for _ in range(30):
        message = random_message(load(ApiKey.PRODUCE, version, "request"), rng)
        body = _body(message)
        request = _read(memoryview(body) if as_view else body, version)
        assert request.transactional_id == message.transactional_id
        assert (request.acks, request.timeout_ms) == (message.acks, message.timeout // MILLISECOND)
        assert [(key, [(index, None if r is None else bytes(r)) for index, r in parts]) for key, parts in request.topics] == list(
            _kio_topics(message)
        )


@each_case("version", _VERSIONS)
def test_a_changed_byte_gives_another_request_or_is_malformed(version):
    rng = random.Random(f"flip-{version}")
    body = bytearray(_body(random_message(load(ApiKey.PRODUCE, version, "request"), rng)))
    for position in range(len(body)):
        for value in (0, 0x7F, 0x80, 0xFF):
            changed = body.copy()
            changed[position] = value
            with contextlib.suppress(MalformedMessage):
                _read(bytes(changed), version)


def _outcome(frame, version):
    try:
        request = _read(frame, version)
    except MalformedMessage:
        return None
    return (*request[:3], [(topic, [(index, r and bytes(r)) for index, r in batches]) for topic, batches in request.topics])


def _one_batch(version, records, transactional_id=None):
    head = b"\0" if transactional_id is None else uvarint(len(transactional_id) + 1) + transactional_id
    topic = bytes(range(16)) if version >= 13 else b"\x06topic"
    records = b"\0" if records is None else uvarint(len(records) + 1) + records
    return head + b"\xff\xff\0\0\3\xe8" + b"\2" + topic + b"\2" + b"\0\0\0\7" + records + b"\0\0\0"


# The reader of one batch takes bytes only: of a view all is read by the general reader.
@each_case("version", [9, 13])
@each_case("size", [None, 0, 1, 125, 126, 127, 128, 255, 16_381, 16_382, 16_383, 20_000])
@each_case("transactional_id", [None, b"", b"id"])
def test_one_batch_is_read_by_bytes_as_by_a_view(version, size, transactional_id):
    body = _one_batch(version, None if size is None else bytes(size), transactional_id)
    read = _outcome(body, version)
    assert read is not None
    assert read == _outcome(memoryview(body), version) == _outcome(body + b"more", version)


@pytest.mark.parametrize("version", [9, 13])
@pytest.mark.parametrize("size", [3, 200])
def test_a_spoilt_request_of_one_batch_is_read_by_bytes_as_by_a_view(version, size):
    body = _one_batch(version, bytes(size))
    spoilt = [body[:end] for end in range(len(body))]
    for position in range(len(body)):
        for value in (0, 1, 2, 3, 0x7F, 0x80, 0x81, 0xFF):
            changed = bytearray(body)
            changed[position] = value
            spoilt.append(bytes(changed))
    for changed in spoilt:
        assert _outcome(changed, version) == _outcome(memoryview(changed), version), changed


def test_tags_nobody_knows_are_skipped():
    #      transactional id null, acks 1, timeout 9, one topic "t", one partition 0 with records "r" and a tag, tags, tags
    body = b"\x00" + b"\x00\x01" + b"\x00\x00\x00\x09" + b"\x02" + b"\x02t" + b"\x02" + b"\x00\x00\x00\x00" + b"\x02r"
    body += b"\x01\x05\x02zz" + b"\x01\x07\x00" + b"\x01\x63\x01y"
    request = _read(body, 9)
    assert request.topics == (("t", ((0, b"r"),)),)


@pytest.mark.parametrize("version", [3, 9])
def test_a_null_array_is_malformed(version):
    head = (b"\xff\xff" if version == 3 else b"\x00") + b"\x00\x01" + b"\x00\x00\x00\x09"
    with pytest.raises(MalformedMessage, match="null"):
        _read(head + (b"\xff\xff\xff\xff" if version == 3 else b"\x00"), version)


def test_a_count_of_billions_takes_no_memory():
    head = b"\xff\xff" + b"\x00\x01" + b"\x00\x00\x00\x09" + b"\x7f\xff\xff\xff"
    with pytest.raises(MalformedMessage):
        _read(head + b"\x00\x01t", 3)


@pytest.mark.parametrize("version", [3, 9, 13])
@pytest.mark.parametrize("in_one_topic", [True, False])
def test_a_request_of_more_partitions_than_any_broker_has_is_malformed(version, in_one_topic):
    def frame(count):
        flexible = version >= 9
        topic = bytes(16) if version >= 13 else b"\2t" if flexible else b"\0\1t"
        tags = b"\0" if flexible else b""
        size = (lambda number: uvarint(number + 1)) if flexible else (lambda number: number.to_bytes(4, "big"))
        partition = bytes(4) + (b"\0" if flexible else b"\xff" * 4) + tags
        if in_one_topic:
            topics = size(1) + topic + size(count) + partition * count + tags
        else:
            topics = size(count) + (topic + size(0) + tags) * count
        return (b"\0" if flexible else b"\xff\xff") + bytes(6) + topics + tags

    count = 15_000
    assert sum(len(batches) or 1 for _, batches in _read(frame(count), version).topics) == count
    with pytest.raises(MalformedMessage, match="20000"):
        _read(frame(25_000), version)
