"""OffsetCommit and OffsetFetch over a socket, in the shapes of their versions."""

import pytest

from odradek.broker.api import SERVED
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.api.offset_requests import UNKNOWN_ID, commit, committed

COMMIT_VERSIONS = range(SERVED[ApiKey.OFFSET_COMMIT].min_version, SERVED[ApiKey.OFFSET_COMMIT].max_version + 1)


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_every_version_commits(client, topic, new_name, version):
    name, topic_id = topic
    group_id = new_name()

    errors = commit(client, version, [(name, topic_id, {0: 7, 1: 8})], group_id, generation_id_or_member_epoch=-1)

    key = topic_id if version >= 10 else name
    assert errors == {(key, 0): ErrorCode.NONE, (key, 1): ErrorCode.NONE}
    assert committed(client, group_id, (name, (0, 1))) == [7, 8]


@pytest.mark.parametrize("version", [2, 9, 10])
def test_what_is_not_there_is_refused_and_the_rest_is_committed(client, topic, new_name, version):
    name, topic_id = topic
    group_id = new_name()

    errors = commit(client, version, [("nowhere", UNKNOWN_ID, {0: 1}), (name, topic_id, {1: 8, 2: 9, -1: 9})], group_id)

    unknown = (UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID) if version >= 10 else ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    key = topic_id if version >= 10 else name
    assert errors == {
        (unknown[0], 0): unknown[1],
        (key, 1): ErrorCode.NONE,
        (key, 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (key, -1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert committed(client, group_id, (name, (1,))) == [8]


def test_no_topic_id_at_all_is_an_unknown_one(client, new_name):
    assert commit(client, 10, [("", None, {0: 1})], new_name()) == {(None, 0): ErrorCode.UNKNOWN_TOPIC_ID}


def test_an_error_of_the_group_is_that_of_each_partition(client, topic, new_name):
    name, topic_id = topic
    topics = [("nowhere", UNKNOWN_ID, {0: 1}), (name, topic_id, {0: 8, 5: 9})]

    errors = commit(client, 9, topics, new_name(), generation_id_or_member_epoch=3, member_id="m")

    assert errors == dict.fromkeys([("nowhere", 0), (name, 0), (name, 5)], ErrorCode.GROUP_ID_NOT_FOUND)


def test_metadata_too_large_is_refused(client, topic, new_name):
    partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": "m" * 4097}
    response = client.call(ApiKey.OFFSET_COMMIT, 9, group_id=new_name(), topics=[{"name": topic[0], "partitions": [partition]}])

    assert response.topics[0].partitions[0].error_code == ErrorCode.OFFSET_METADATA_TOO_LARGE


def test_a_group_may_be_called_nothing(client, topic):
    assert commit(client, 9, [(*topic, {0: 3})], "") == {(topic[0], 0): ErrorCode.NONE}
    assert committed(client, "", (topic[0], (0,))) == [3]


def test_nothing_to_commit_is_no_error(client, new_name):
    assert commit(client, 9, [], new_name()) == {}


def test_pipelined_commits_are_answered_in_order_and_the_last_one_stands(client, topic, new_name):
    name, _ = topic
    group_id = new_name()
    for offset in range(20):
        partitions = [{"partition_index": 0, "committed_offset": offset}]
        client.send(ApiKey.OFFSET_COMMIT, 8, group_id=group_id, topics=[{"name": name, "partitions": partitions}])

    for _ in range(20):
        assert client.receive_frame() is not None

    assert committed(client, group_id, (name, (0,))) == [19]


def test_a_deleted_topic_takes_its_offsets_along(client, topic, new_name):
    name, topic_id = topic
    group_id = new_name()
    commit(client, 9, [(name, topic_id, {0: 7})], group_id)

    client.call(ApiKey.DELETE_TOPICS, 6, topics=[{"name": name, "topic_id": None}])

    assert committed(client, group_id, (name, (0,))) == [-1]
