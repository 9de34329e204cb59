"""Listeners, the addresses they advertise, and the limits on connections, over real sockets."""

import socket

import pytest

from benchmarks.ports import free_ports
from odradek.protocol.api_keys import ApiKey
from tests.raw_client import RawClient, fetch_fields

PROTOCOLS = "listener.security.protocol.map"


def is_served(client):
    return client.call(ApiKey.API_VERSIONS, 0).error_code == 0


def addresses(port):
    """What Metadata and DescribeCluster tell a client that came in by a port."""
    with RawClient("127.0.0.1", port) as client:
        metadata = client.call(ApiKey.METADATA, 12, topics=[])
        cluster = client.call(ApiKey.DESCRIBE_CLUSTER, 1, endpoint_type=1)
    told = {(node.host, node.port) for node in metadata.brokers}
    assert {(node.host, node.port) for node in cluster.brokers} == told
    return told


def test_each_listener_tells_its_clients_its_own_advertised_address(broker_process):
    (inner, outer) = free_ports(2)
    broker = broker_process(
        settings={
            "listeners": f"INNER://127.0.0.1:{inner},OUTER://127.0.0.1:{outer}",
            "advertised.listeners": "INNER://kafka.internal:9092,OUTER://localhost:19092",
            PROTOCOLS: "INNER:PLAINTEXT,OUTER:PLAINTEXT",
            "inter.broker.listener.name": "INNER",
        },
    )
    # The port flag is the first listener's.
    assert addresses(broker.port) == {("kafka.internal", 9092)}
    assert addresses(outer) == {("localhost", 19092)}


def test_without_an_advertised_address_clients_are_told_where_the_listener_is_bound(broker_process):
    broker = broker_process()
    assert addresses(broker.port) == {("127.0.0.1", broker.port)}


def test_a_topic_made_by_one_listener_is_there_by_the_other(broker_process):
    (outer,) = free_ports(1)
    broker = broker_process(
        settings={
            "listeners": f"INNER://127.0.0.1:0,OUTER://127.0.0.1:{outer}",
            PROTOCOLS: "INNER:PLAINTEXT,OUTER:PLAINTEXT",
            "inter.broker.listener.name": "INNER",
        },
    )
    with RawClient("127.0.0.1", broker.port) as one, RawClient("127.0.0.1", outer) as two:
        topic = {"name": "shared", "num_partitions": 1, "replication_factor": 1}
        assert one.call(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=5000).topics[0].error_code == 0
        assert two.produce("shared", b"x").error_code == 0


@pytest.mark.parametrize("limit", ["max.connections", "max.connections.per.ip"])
def test_connections_over_the_limit_are_closed_and_a_place_that_is_left_is_free(broker_process, limit):
    broker = broker_process(settings={limit: 2})
    with RawClient(broker.host, broker.port) as first:
        with RawClient(broker.host, broker.port) as second:
            assert is_served(first)
            assert is_served(second)
            with RawClient(broker.host, broker.port) as third:
                assert third.is_closed_by_peer()
            assert is_served(first)
            second.socket.shutdown(socket.SHUT_WR)
            assert second.is_closed_by_peer()
        with RawClient(broker.host, broker.port) as fourth:
            assert is_served(fourth)


def test_an_idle_connection_is_closed_and_a_waiting_one_is_not(broker_process):
    broker = broker_process(settings={"connections.max.idle.ms": 1000})
    with RawClient(broker.host, broker.port) as waiting:
        topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
        waiting.call(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=5000)
        waiting.send(ApiKey.FETCH, 12, **fetch_fields("t", 0, max_wait_ms=30_000))
        # The idle client connects later: when it is closed, the waiting one has been silent for longer.
        with RawClient(broker.host, broker.port) as idle:
            assert is_served(idle)
            assert idle.is_closed_by_peer()
        with RawClient(broker.host, broker.port) as producer:
            assert producer.produce("t", b"x").error_code == 0
        assert waiting.receive(ApiKey.FETCH, 12).error_code == 0


def test_a_frame_over_the_configured_limit_closes_the_connection(broker_process):
    broker = broker_process(settings={"socket.request.max.bytes": 10_000})
    with RawClient(broker.host, broker.port) as client:
        assert is_served(client)
        client.send(ApiKey.METADATA, 1, topics=[{"name": "x" * 200}] * 60)
        assert client.is_closed_by_peer()
    assert "socket.request.max.bytes" in broker.stderr
