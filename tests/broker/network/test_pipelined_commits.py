"""OffsetCommits that a client sends without waiting: decided on together, answered in order, not overtaken by anything else."""

import socket

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.raw_client import RawClient, decode_response, encode_request

COMMITS = 300


@pytest.fixture
def topic(broker, new_name):
    name = new_name()
    with RawClient(broker.host, broker.port) as client:
        client.call(ApiKey.CREATE_TOPICS, 7, topics=[{"name": name, "num_partitions": 1, "replication_factor": 1}])
    return name


def commit(topic, number, group_id="g", partition=0):
    partitions = [{"partition_index": partition, "committed_offset": number}]
    return encode_request(ApiKey.OFFSET_COMMIT, 8, number, group_id=group_id, topics=[{"name": topic, "partitions": partitions}])


def receive_commits(client, count):
    """(correlation id, error) of the next answers."""
    answers = [decode_response(ApiKey.OFFSET_COMMIT, 8, client.receive_frame()) for _ in range(count)]
    return [(number, response.topics[0].partitions[0].error_code) for number, response in answers]


def fetch(topic, number, group_id="g"):
    asked = [{"name": topic, "partition_indexes": (0,)}]
    return encode_request(ApiKey.OFFSET_FETCH, 5, number, group_id=group_id, topics=asked)


def fetched(client):
    return decode_response(ApiKey.OFFSET_FETCH, 5, client.receive_frame())[1].topics[0].partitions[0].committed_offset


def test_commits_are_answered_in_the_order_in_which_they_came(client, topic):
    client.socket.sendall(b"".join(commit(topic, number, group_id=f"g-{number % 7}") for number in range(COMMITS)))

    assert receive_commits(client, COMMITS) == [(number, ErrorCode.NONE) for number in range(COMMITS)]


def test_what_is_refused_at_once_is_answered_in_its_place(client, topic):
    client.socket.sendall(b"".join(commit(topic, number, partition=number % 2) for number in range(20)))

    errors = [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert receive_commits(client, 20) == [(number, errors[number % 2]) for number in range(20)]


def test_a_fetch_sees_the_commits_before_it_and_not_those_behind(client, topic):
    client.socket.sendall(b"".join([commit(topic, 1), commit(topic, 2), fetch(topic, 3), commit(topic, 4), fetch(topic, 5)]))

    assert len(receive_commits(client, 2)) == 2
    assert fetched(client) == 2
    assert len(receive_commits(client, 1)) == 1
    assert fetched(client) == 4


def test_commits_before_a_malformed_one_are_answered(client, topic):
    malformed = commit(topic, 99)[:-3]
    malformed = (len(malformed) - 4).to_bytes(4, "big") + malformed[4:]
    client.socket.sendall(commit(topic, 1) + commit(topic, 2) + malformed)

    assert receive_commits(client, 2) == [(1, ErrorCode.NONE), (2, ErrorCode.NONE)]
    assert client.is_closed_by_peer()


def test_a_client_that_sends_no_more_has_its_commits_kept(broker, client, topic):
    with RawClient(broker.host, broker.port) as leaving:
        leaving.socket.sendall(b"".join(commit(topic, number, group_id="left") for number in range(50)))
        leaving.socket.shutdown(socket.SHUT_WR)
        assert len(receive_commits(leaving, 50)) == 50
        assert leaving.is_closed_by_peer()

    client.socket.sendall(fetch(topic, 1, group_id="left"))
    assert fetched(client) == 49
