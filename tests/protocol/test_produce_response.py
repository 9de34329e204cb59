"""Produce responses by hand, against the general writer."""

from uuid import UUID

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import response_encoder, success_encoder
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from odradek.protocol.messages import load, messages
from odradek.protocol.produce_response import body_if_all_appended
from odradek.protocol.writers import compile_writer
from tests.cases import each_case

PARTITIONS = [
    PartitionProduceResponse(
        index=index,
        base_offset=2**40 + index,
        log_append_time_ms=1_700_000_000_000 if index % 2 else -1,
        log_start_offset=index,
    )
    for index in range(150)
]


def general_body(response, version):
    chunks = []
    compile_writer(load(ApiKey.PRODUCE, version, "response"), messages(ApiKey.PRODUCE).classes["response"])(
        chunks.append, response
    )
    return b"".join(chunks)


def good_encoder(version):
    encode_success = success_encoder(ApiKey.PRODUCE, version)
    assert encode_success is not None
    return encode_success


@each_case("version", [9, 10, 11, 12, 13])
@each_case("counts", [[], [0], [1], [2], [1, 1], [0, 6], [150, 2]])
def test_it_is_what_the_general_writer_makes_of_the_same(version, counts):
    topics = [
        TopicProduceResponse(
            name="\u00e4" * (100 * number + 1), topic_id=UUID(int=number + 1), partition_responses=PARTITIONS[:count]
        )
        for number, count in enumerate(counts)
    ]
    response = ProduceResponse(responses=topics)
    body = body_if_all_appended(response, version)
    assert body == general_body(response, version)
    assert good_encoder(version)(5, response) == (len(body) + 5).to_bytes(4, "big") + b"\0\0\0\5\0" + body


def test_a_topic_is_named_rightly_whenever_it_comes_and_whoever_else_has_its_name():
    encode_success = good_encoder(13)
    # The ids are made anew each time: another may lie where an earlier one did.
    for number in (1, 2, 1, 3, 2):
        topic = TopicProduceResponse(name="t", topic_id=UUID(int=number), partition_responses=PARTITIONS[:1])
        response = ProduceResponse(responses=[topic])
        assert encode_success(5, response)[9:] == general_body(response, 13)


@each_case(
    "told",
    [
        {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER},
        {"error_message": ""},
        {"record_errors": [BatchIndexAndErrorMessage(batch_index=1)]},
        {"current_leader": LeaderIdAndEpoch(leader_id=1, leader_epoch=2)},
    ],
)
def test_a_partition_that_says_more_is_left_to_the_general_writer(told):
    more = PartitionProduceResponse(index=1, **told)
    response = ProduceResponse(responses=[TopicProduceResponse(partition_responses=[PARTITIONS[0], more])])
    assert body_if_all_appended(response, 13) is None
    assert good_encoder(13)(5, response) is None
    (frame,) = response_encoder(ApiKey.PRODUCE, 13)(5, response)
    assert frame[9:] == general_body(response, 13)


@pytest.mark.parametrize("told", [{"throttle_time_ms": 1}, {"node_endpoints": [NodeEndpoint(node_id=1)]}])
def test_a_response_that_says_more_is_left_to_the_general_writer(told):
    assert body_if_all_appended(ProduceResponse(**told), 13) is None
