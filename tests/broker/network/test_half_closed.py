"""A client that has said all it will say, and still reads: it is given what it asked for before its connection closes."""

import os
import socket

import pytest

from odradek.protocol.api_keys import ApiKey
from tests.raw_client import RawClient, decode_response, encode_request, fetch_fields

# Far more than the sockets between the two hold.
BATCHES, BATCH_BYTES = 10, 1_000_000


@pytest.fixture
def topic(broker, new_name):
    name = new_name()
    with RawClient(broker.host, broker.port) as client:
        client.call(ApiKey.CREATE_TOPICS, 7, topics=[{"name": name, "num_partitions": 1, "replication_factor": 1}])
        for _ in range(BATCHES):
            assert client.produce(name, os.urandom(BATCH_BYTES)).error_code == 0
    return name


@pytest.mark.parametrize("max_wait_ms", [0, 300])
def test_the_whole_of_a_large_answer_is_sent(broker, topic, max_wait_ms):
    with RawClient(broker.host, broker.port) as client:
        limits = {"max_bytes": 2 * BATCHES * BATCH_BYTES, "partition_max_bytes": 2 * BATCHES * BATCH_BYTES}
        client.send(ApiKey.FETCH, 12, **fetch_fields(topic, 0, max_wait_ms=max_wait_ms, **limits))
        client.socket.shutdown(socket.SHUT_WR)
        response = client.receive(ApiKey.FETCH, 12)
        assert len(response.responses[0].partitions[0].records) > BATCHES * BATCH_BYTES
        assert client.is_closed_by_peer()


def test_requests_that_were_sent_together_are_all_answered(broker, topic):
    with RawClient(broker.host, broker.port) as client:
        waiting = encode_request(ApiKey.FETCH, 12, 1, **fetch_fields(topic, BATCHES, max_wait_ms=200))
        client.socket.sendall(waiting + encode_request(ApiKey.METADATA, 1, 2, topics=[]))
        client.socket.shutdown(socket.SHUT_WR)
        answers = [(ApiKey.FETCH, 12), (ApiKey.METADATA, 1)]
        assert [decode_response(*answer, client.receive_frame())[0] for answer in answers] == [1, 2]
        assert client.is_closed_by_peer()
