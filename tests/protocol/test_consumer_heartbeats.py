"""Heartbeats of consumer groups that are read once and written by hand have the content and the bytes of all others."""

import pytest
from kio.static.constants import uuid_zero

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import response_encoder
from odradek.protocol.consumer_heartbeats import _MOST_REMEMBERED, remembering, unchanged_frame
from odradek.protocol.message_types.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.cases import each_case

KEY = ApiKey.CONSUMER_GROUP_HEARTBEAT
UNCHANGED = ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=7, heartbeat_interval_ms=5_000)


@each_case("version", [0, 1])
@each_case("member_id", ["m", "", "é" * 63, "x" * 126])
def test_a_response_that_tells_nothing_has_the_bytes_of_the_general_writer(version, member_id):
    response = UNCHANGED._replace(member_id=member_id, throttle_time_ms=3)
    assert [unchanged_frame(258, response)] == response_encoder(KEY, version)(258, response)


@each_case(
    "changed",
    [
        {"error_code": 110},
        {"error_message": "no"},
        {"member_id": None},
        {"member_id": "x" * 127},
        {"assignment": Assignment()},
        {"assignment": Assignment([TopicPartitions(uuid_zero, [1])])},
    ],
)
def test_any_other_response_is_left_to_the_general_writer(changed):
    assert unchanged_frame(1, UNCHANGED._replace(**changed)) is None


class Decoder:
    def __init__(self, request):
        self.request = request
        self.calls = 0

    def __call__(self, _frame, _position):
        self.calls += 1
        return self.request


PLAIN = ConsumerGroupHeartbeatRequest(topic_partitions=None)


def test_equal_bodies_behind_different_headers_are_read_once():
    decoder = Decoder(PLAIN)
    decode = remembering(decoder)
    assert decode(b"head-a-body", 7) is decode(memoryview(b"header-body"), 7) is PLAIN
    assert decoder.calls == 1
    decode(b"head-a-BODY", 7)
    assert decoder.calls == 2


@pytest.mark.parametrize("request_", [PLAIN._replace(subscribed_topic_names=["t"]), PLAIN._replace(topic_partitions=[])])
def test_a_request_that_says_something_is_read_each_time(request_):
    decoder = Decoder(request_)
    decode = remembering(decoder)
    decode(b"body", 0)
    decode(b"body", 0)
    assert decoder.calls == 2


def test_no_more_than_so_many_requests_are_remembered():
    decoder = Decoder(PLAIN)
    decode = remembering(decoder)
    for number in range(_MOST_REMEMBERED + 1):
        decode(b"%d" % number, 0)
    decode(b"0", 0)
    assert decoder.calls == _MOST_REMEMBERED + 2


def test_a_long_request_is_read_each_time():
    decoder = Decoder(PLAIN)
    decode = remembering(decoder)
    decode(bytes(513), 0)
    decode(bytes(513), 0)
    assert decoder.calls == 2
