"""The sliced codecs say what the others say, for every API and version served, and keep to their limits."""

import random
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import pytest

from odradek.broker.api import SERVED
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import request_decoder, response_encoder
from odradek.protocol.client_codecs import request_header
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.large_messages import BLOCK, ResponseTooLarge, Room, sliced_decoder, sliced_encoder
from odradek.protocol.messages import messages
from odradek.protocol.varint import uvarint
from tests.cases import case
from tests.kio_schemas import load
from tests.protocol.kio_messages import canonical, encoded, served_versions
from tests.protocol.random_messages import random_message

every_sliced_api = pytest.mark.parametrize(
    "api_key", [key for key in SERVED if key not in {ApiKey.PRODUCE, ApiKey.FETCH}], ids=lambda key: key.name
)


def run(work: Generator[None, Any, Any]) -> tuple[Any, int]:
    """What a generator returns, and how often it could have been left."""
    points = 0
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value, points
        points += 1


def outcome(decode: Callable[[bytes, int], Any], frame: bytes, position: int) -> Any:
    """What ``decode`` returns, or why it does not."""
    try:
        return decode(frame, position)
    except MalformedMessage as error:
        return error.reason


def sliced(api_key: ApiKey, version: int, frame: bytes, position: int) -> Any:
    return run(sliced_decoder(api_key, version)(frame, position, 1000))[0]


def frame_of(api_key: ApiKey, version: int, body: bytes) -> tuple[bytes, int]:
    """A frame, and where its header v1 ends."""
    flexible = bool(load(api_key, version, "request").__flexible__)
    header = request_header(api_key, version, 1, "client", flexible=flexible)
    return header + body, len(header) - flexible


@every_sliced_api
def test_a_request_is_read_as_by_the_reader_of_small_ones(api_key):
    for version in served_versions(api_key, "request"):
        entity = load(api_key, version, "request")
        rng = random.Random(f"{api_key}-{version}")
        with case(f"v{version}"):
            for _ in range(10):
                frame, position = frame_of(api_key, version, encoded(random_message(entity, rng)))
                expected = outcome(request_decoder(api_key, version), frame, position)
                assert outcome(partial(sliced, api_key, version), frame, position) == expected


@every_sliced_api
def test_a_response_is_written_as_by_the_writer_of_small_ones(api_key):
    newest = load(api_key, SERVED[api_key].max_version, "response")
    for version in served_versions(api_key, "response"):
        rng = random.Random(f"{api_key}-{version}")
        with case(f"v{version}"):
            for _ in range(10):
                response = canonical(random_message(newest, rng), messages(api_key).classes["response"])
                try:
                    expected = response_encoder(api_key, version)(7, response)
                except (AttributeError, IndexError):
                    # One that this version cannot say.
                    continue
                assert run(sliced_encoder(api_key, version)(7, response, Room(1 << 20)))[0] == [b"".join(expected)]


def find_coordinator(keys: int) -> tuple[bytes, int]:
    return frame_of(ApiKey.FIND_COORDINATOR, 4, b"\0" + uvarint(keys + 1) + b"\2k" * keys + b"\0")


def test_a_long_array_can_be_left_after_every_block():
    request, points = run(sliced_decoder(ApiKey.FIND_COORDINATOR, 4)(*find_coordinator(10 * BLOCK), 10 * BLOCK))
    assert request.coordinator_keys == ("k",) * (10 * BLOCK)
    assert points == 10


def test_a_long_response_can_be_left_after_every_block():
    m = messages(ApiKey.FIND_COORDINATOR)
    response = m.FindCoordinatorResponse(coordinators=[m.Coordinator(key="k", host="h")] * (10 * BLOCK))
    (frame,), points = run(sliced_encoder(ApiKey.FIND_COORDINATOR, 4)(7, response, Room(1 << 20)))
    assert [frame] == response_encoder(ApiKey.FIND_COORDINATOR, 4)(7, response)
    assert points == 10


def test_a_response_can_be_left_after_every_item_whose_array_is_empty():
    m = messages(ApiKey.DESCRIBE_GROUPS)
    response = m.DescribeGroupsResponse(groups=[m.DescribedGroup(group_id=f"g{number}") for number in range(100)])
    (frame,), points = run(sliced_encoder(ApiKey.DESCRIBE_GROUPS, 5)(7, response, Room(1 << 20)))
    assert [frame] == response_encoder(ApiKey.DESCRIBE_GROUPS, 5)(7, response)
    assert points >= 100


def test_arrays_of_too_many_items_are_refused_before_any_is_made():
    work = sliced_decoder(ApiKey.FIND_COORDINATOR, 4)(*find_coordinator(1001), 1000)
    with pytest.raises(MalformedMessage, match="more than 1000 items"):
        next(work)


def test_the_items_of_nested_arrays_are_counted_together():
    topic = b"\2t" + uvarint(11) + bytes(40) + b"\0"
    body = b"\2" + b"\2g" + b"\0" + (0).to_bytes(4) + uvarint(91) + topic * 90 + b"\0" + b"\0\0"
    frame = frame_of(ApiKey.OFFSET_FETCH, 9, body)
    request, _ = run(sliced_decoder(ApiKey.OFFSET_FETCH, 9)(*frame, 991))
    assert len(request.groups[0].topics) == 90
    with pytest.raises(MalformedMessage, match="more than 990 items"):
        run(sliced_decoder(ApiKey.OFFSET_FETCH, 9)(*frame, 990))


def test_a_string_longer_than_kafkas_longest_is_refused():
    key = uvarint(32_769) + b"k" * 32_768
    frame = frame_of(ApiKey.FIND_COORDINATOR, 4, b"\0\2" + key + b"\0")
    with pytest.raises(MalformedMessage, match="a string has 32768 bytes"):
        run(sliced_decoder(ApiKey.FIND_COORDINATOR, 4)(*frame, 1000))


def test_a_response_over_its_bytes_is_given_up():
    m = messages(ApiKey.FIND_COORDINATOR)
    response = m.FindCoordinatorResponse(coordinators=[m.Coordinator(key="k", host="h")] * (10 * BLOCK))
    work = sliced_encoder(ApiKey.FIND_COORDINATOR, 4)(7, response, Room(2 * BLOCK))
    with pytest.raises(ResponseTooLarge):
        next(work)


@pytest.mark.parametrize("place", ["the header", "the body"])
def test_millions_of_tagged_fields_are_refused(place):
    tags = uvarint(1_000_000) + b"\x7f\0" * 1_000_000
    body = b"\0\2\2k"
    if place == "the body":
        frame, position = frame_of(ApiKey.FIND_COORDINATOR, 4, body + tags)
    else:
        header = request_header(ApiKey.FIND_COORDINATOR, 4, 1, "client", flexible=False)
        frame, position = header + tags + body + b"\0", len(header)
    for decode in (
        lambda: run(sliced_decoder(ApiKey.FIND_COORDINATOR, 4)(frame, position, 1000)),
        lambda: request_decoder(ApiKey.FIND_COORDINATOR, 4)(frame, position),
    ):
        with pytest.raises(MalformedMessage, match="1000000 tagged fields"):
            decode()


def described(names: int, copies: int) -> Any:
    """A group of one member with so many subscribed names, named so often."""
    m = messages(ApiKey.CONSUMER_GROUP_DESCRIBE)
    member = m.Member(subscribed_topic_names=[f"topic-{number:06}" for number in range(names)])
    return m.ConsumerGroupDescribeResponse(groups=[m.DescribedGroup(group_id="g", members=[member])] * copies)


def test_an_object_that_is_in_an_array_often_is_written_once():
    key = ApiKey.CONSUMER_GROUP_DESCRIBE
    _, once = run(sliced_encoder(key, 1)(7, described(50 * BLOCK, 1), Room(1 << 30)))
    chunks, often = run(sliced_encoder(key, 1)(7, described(50 * BLOCK, 20), Room(1 << 30)))
    assert b"".join(chunks) == b"".join(response_encoder(key, 1)(7, described(50 * BLOCK, 20)))
    assert once >= 50
    assert often < 2 * once


def test_its_copies_take_their_room_all_the_same():
    with pytest.raises(ResponseTooLarge):
        run(sliced_encoder(ApiKey.CONSUMER_GROUP_DESCRIBE, 1)(7, described(BLOCK, 20), Room(15 * 14 * BLOCK)))


def test_what_is_taken_is_what_is_written():
    room = Room(1 << 20)
    chunks, _ = run(sliced_encoder(ApiKey.CONSUMER_GROUP_DESCRIBE, 1)(7, described(1_000, 3), room))
    assert room.limit - room.left == pytest.approx(sum(map(len, chunks)), abs=50)
