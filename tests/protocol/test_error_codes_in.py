"""Every error code of a response is found, wherever it stands in it."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.error_codes_in import compile_error_scan, compile_sliced_error_scan
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages


class Tally(list):
    note_error = list.append


def codes_in(api_key, response):
    tally = Tally()
    compile_error_scan(api_key)(response, tally)
    in_slices = Tally()
    for _ in compile_sliced_error_scan(api_key)(response, in_slices):
        pass
    assert in_slices == tally
    return tally


def test_each_partition_with_an_error_counts_once():
    m = messages(ApiKey.PRODUCE)
    results = [m.PartitionProduceResponse(error_code=code) for code in (0, ErrorCode.NOT_LEADER_OR_FOLLOWER, 0, 6, 87)]
    topics = [m.TopicProduceResponse(partition_responses=results[:3]), m.TopicProduceResponse(partition_responses=results[3:])]
    assert codes_in(ApiKey.PRODUCE, m.ProduceResponse(responses=topics)) == [6, 6, 87]


def test_the_code_at_the_top_and_those_below_are_found():
    m = messages(ApiKey.LEAVE_GROUP)
    members = [m.MemberResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)]
    assert codes_in(ApiKey.LEAVE_GROUP, m.LeaveGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, members=members)) == [16, 25]


def test_a_null_array_holds_no_code():
    m = messages(ApiKey.CREATE_TOPICS)
    topics = [m.CreatableTopicResult(error_code=ErrorCode.INVALID_PARTITIONS, configs=None)]
    assert codes_in(ApiKey.CREATE_TOPICS, m.CreateTopicsResponse(topics=topics)) == [37]


@pytest.mark.parametrize("api_key", [ApiKey.API_VERSIONS, ApiKey.HEARTBEAT, ApiKey.FETCH, ApiKey.OFFSET_FETCH])
def test_a_response_of_defaults_holds_no_code(api_key):
    assert codes_in(api_key, messages(api_key).response()) == []


def test_a_long_scan_can_be_left_after_each_topic():
    m = messages(ApiKey.LIST_OFFSETS)
    topics = [m.ListOffsetsTopicResponse(partitions=[m.ListOffsetsPartitionResponse(error_code=3)] * 5)] * 10
    tally = Tally()
    scan = compile_sliced_error_scan(ApiKey.LIST_OFFSETS)(m.ListOffsetsResponse(topics=topics), tally)
    next(scan)
    assert tally == [3] * 5
    assert len(list(scan)) == 10
    assert tally == [3] * 50
