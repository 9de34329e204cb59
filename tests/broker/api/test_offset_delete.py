"""OffsetDelete over a socket."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.api.offset_requests import commit, committed


def delete(client, group_id, *topics):
    """``topics``: (name, indexes)."""
    asked = [{"name": name, "partitions": [{"partition_index": index} for index in indexes]} for name, indexes in topics]
    response = client.call(ApiKey.OFFSET_DELETE, 0, group_id=group_id, topics=asked)
    errors = {
        (each.name, partition.partition_index): partition.error_code for each in response.topics for partition in each.partitions
    }
    return response.error_code, errors


def test_a_deleted_offset_is_gone(client, topic, new_name):
    name, topic_id = topic
    group_id = new_name()
    commit(client, 9, [(name, topic_id, {0: 7, 1: 8})], group_id)

    assert delete(client, group_id, (name, (0,))) == (ErrorCode.NONE, {(name, 0): ErrorCode.NONE})

    assert committed(client, group_id, (name, (0, 1))) == [-1, 8]


def test_what_is_not_there_is_refused_and_the_rest_is_deleted(client, topic, new_name):
    name, topic_id = topic
    group_id = new_name()
    commit(client, 9, [(name, topic_id, {0: 7})], group_id)

    error, errors = delete(client, group_id, (name, (0, 2)), ("nowhere", (0,)))

    assert error == ErrorCode.NONE
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors == {(name, 0): ErrorCode.NONE, (name, 2): unknown, ("nowhere", 0): unknown}
    assert committed(client, group_id, (name, (0,))) == [-1]


def test_an_error_of_the_group_is_the_only_one(client, topic, new_name):
    assert delete(client, "", (topic[0], (0,))) == (ErrorCode.INVALID_GROUP_ID, {})
    assert delete(client, new_name(), (topic[0], (0,)), ("nowhere", (0,))) == (ErrorCode.GROUP_ID_NOT_FOUND, {})
