"""Client quotas at a broker whose controller is elsewhere: the controller counts what is changed, the broker mutes its client."""

import time

import pytest

from benchmarks.peers import free_ports
from odradek.broker.metadata.client_quotas import CLIENT_ID, CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Record, build_batch
from tests.broker.controller.own_clusters import SETTINGS, Quorum
from tests.broker_process import BrokerProcess
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.campaigns.kafka_tools.odradek_brokers import OdradekBrokers
from tests.raw_client import RawClient, produce_fields

from ..quotas.bed import told_ms

pytestmark = pytest.mark.timeout(120)

OTHER = 11


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """Of a broker that forwards to its controller, which is another broker, too."""
    scratch = tmp_path_factory.mktemp("quotas")
    first_port, controller_port = free_ports(2)
    settings = SETTINGS | {
        "offsets.topic.replication.factor": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{first_port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
    }
    node = BrokerProcess(scratch / "one", settings=settings)
    node.port = first_port
    brokers = OdradekBrokers(scratch / "others", Quorum(controller_port), {OTHER: SETTINGS})
    try:
        with node:
            brokers.start()
            set_quota(brokers.ports[OTHER], "mutant", CONTROLLER_MUTATION_RATE, 10.0)
            set_quota(brokers.ports[OTHER], "maker", CONTROLLER_MUTATION_RATE, 10.0)
            set_quota(brokers.ports[OTHER], "producer", PRODUCER_BYTE_RATE, 10_000.0)
            yield brokers.ports[OTHER]
    finally:
        brokers.close()


def set_quota(port, name, key, value):
    with RawClient("127.0.0.1", port) as client:
        entries = [
            {"entity": [{"entity_type": CLIENT_ID, "entity_name": name}], "ops": [{"key": key, "value": value, "remove": False}]}
        ]
        altered = client.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=entries, validate_only=False)
        assert [entry.error_code for entry in altered.entries] == [0]
        filters = [{"entity_type": CLIENT_ID, "match_type": 0, "match": name}]
        until(lambda: client.call(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, components=filters, strict=False).entries)


def validate(client, partitions, client_id="mutant"):
    topic = {"name": "t", "num_partitions": partitions, "replication_factor": 1}
    return client.call(ApiKey.CREATE_TOPICS, 7, client_id=client_id, topics=[topic], timeout_ms=5_000, validate_only=True)


def test_changes_over_the_quota_are_refused_and_the_broker_mutes_the_client(port):
    with RawClient("127.0.0.1", port) as client:
        assert validate(client, 115).topics[0].error_code == 0
        refused = validate(client, 1)
        began_s = time.monotonic()
        assert refused.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        # Of the five that are owed.
        assert 0 < told_ms(refused) <= 500
        assert validate(client, 1).topics[0].error_code == 0
        assert time.monotonic() - began_s > told_ms(refused) / 1_000 - 0.05


def test_topics_that_are_created_by_themselves_are_held_to_the_quota_of_the_client_that_asks_for_them(port):
    def told(client, client_id, name):
        topics = [{"topic_id": None, "name": name}]
        answer = client.call(ApiKey.METADATA, 12, client_id=client_id, topics=topics)
        assert told_ms(answer) == 0
        return answer.topics[0].error_code

    with RawClient("127.0.0.1", port) as client:
        # From then on the client owes for longer than the test takes.
        assert validate(client, 9_000, "maker").topics[0].error_code == 0
        assert told(client, "maker", "by-itself") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        # The controller is asked for it after the other one.
        until(lambda: told(client, "another", "a-witness") == ErrorCode.NONE)
        assert told(client, "maker", "by-itself") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        until(lambda: told(client, "another", "by-itself") == ErrorCode.NONE)


def test_a_broker_of_a_cluster_holds_its_clients_to_their_rates(port):
    with RawClient("127.0.0.1", port) as client:
        # Placed on the broker that is asked.
        topic = {
            "name": "here",
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": [{"partition_index": 0, "broker_ids": [OTHER]}],
        }
        assert client.call(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=5_000).topics[0].error_code == 0
        until(lambda: client.produce_records("here", build_batch([Record(timestamp=0, value=b"")])).error_code == 0)
        records = build_batch([Record(timestamp=0, value=bytes(104_000))])
        answer = client.call(ApiKey.PRODUCE, 9, client_id="producer", **produce_fields("here", records))
        began_s = time.monotonic()
        assert told_ms(answer) == pytest.approx(400, abs=30)
        # Of another client id, and of the same connection.
        client.call(ApiKey.API_VERSIONS, 2)
        assert time.monotonic() - began_s > told_ms(answer) / 1_000 - 0.05
