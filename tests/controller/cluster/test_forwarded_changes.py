"""Changes that a broker forwards to the controller in another's process: rights, quotas and subscriptions hold at all brokers."""

import time
from contextlib import closing

import pytest

from odradek.client.api import Api
from odradek.client.blocking import BlockingClient
from odradek.controller.metadata.client_quotas import CLIENT_ID, CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from odradek.protocol.message_types.create_acls import CreateAclsRequest
from odradek.protocol.message_types.describe_acls import DescribeAclsRequest
from odradek.protocol.message_types.describe_client_quotas import DescribeClientQuotasRequest
from odradek.protocol.message_types.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.protocol.message_types.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.protocol.message_types.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.records import Record, build_batch
from tests.broker.api.acl_requests import creation
from tests.broker.quotas.bed import told_ms
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.controller.cluster.own_clusters import OTHER, two_brokers
from tests.raw_client import RawClient, produce_fields

pytestmark = pytest.mark.timeout(120)

RIGHTS = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:ANONYMOUS"}
ACLS = DescribeAclsRequest(1, None, 1, None, None, 1, 1)
SUBSCRIPTIONS = Api(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS)


@pytest.fixture(scope="module")
def ports(tmp_path_factory):
    """Of the broker that has the controller in its process, and of the other, which forwards to it."""
    with two_brokers(tmp_path_factory.mktemp("cluster"), RIGHTS) as (node, brokers):
        yield node.port, brokers.ports[OTHER]
        assert brokers.stop(OTHER) == 0
        assert '"level": "error"' not in node.stderr


@pytest.fixture(scope="module")
def port(ports):
    """Of the other broker; some of its clients have quotas."""
    set_quota(ports[1], "mutant", CONTROLLER_MUTATION_RATE, 10.0)
    set_quota(ports[1], "maker", CONTROLLER_MUTATION_RATE, 10.0)
    set_quota(ports[1], "producer", PRODUCER_BYTE_RATE, 10_000.0)
    return ports[1]


def call(port, api, request):
    with closing(BlockingClient("127.0.0.1", port, "app", 30.0)) as client:
        return client.call(api if isinstance(api, Api) else Api(api), request)


def quotas(port):
    answer = call(port, ApiKey.DESCRIBE_CLIENT_QUOTAS, DescribeClientQuotasRequest())
    return {entry.entity[0].entity_name: [tuple(value) for value in entry.values] for entry in answer.entries}


def described(port):
    return [resource.resource_name for resource in call(port, ApiKey.DESCRIBE_ACLS, ACLS).resources]


def test_entries_that_a_broker_forwards_are_in_force_at_all(ports):
    created = call(ports[1], ApiKey.CREATE_ACLS, CreateAclsRequest([creation("allow User:a READ TOPIC t")]))
    assert [result.error_code for result in created.results] == [0]
    until(lambda: described(ports[1]) == ["t"])
    assert described(ports[0]) == ["t"]
    # The broker itself asks the controller for the topic, which takes it for a super user.
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name="made")])
    until(lambda: not call(ports[1], Api(ApiKey.METADATA, 4, 12), wanted).topics[0].error_code)


def test_quotas_that_a_broker_forwards_are_known_to_all(ports):
    entry = RequestEntryData([RequestEntityData("user", "a")], [OpData("producer_byte_rate", 5.0)])
    altered = call(ports[1], ApiKey.ALTER_CLIENT_QUOTAS, AlterClientQuotasRequest([entry]))
    assert [(result.error_code, result.entity) for result in altered.entries] == [(0, (("user", "a"),))]
    until(lambda: quotas(ports[1]).get("a") == [("producer_byte_rate", 5.0)])
    assert quotas(ports[0]) == quotas(ports[1])
    refused = call(ports[1], ApiKey.ALTER_CLIENT_QUOTAS, AlterClientQuotasRequest([entry._replace(entity=[])]))
    assert [result.error_message for result in refused.entries] == ["Invalid empty client quota entity"]


def alter_interval(port, interval_ms):
    configs = [AlterableConfig("metrics", 0, "m"), AlterableConfig("interval.ms", 0, interval_ms)]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(16, "s", configs)])
    (answer,) = call(port, ApiKey.INCREMENTAL_ALTER_CONFIGS, request).responses
    return answer.error_code


def asked(port):
    """The metrics that a client of the broker is asked for, and how often; None if it is not offered to ask."""
    with closing(BlockingClient("127.0.0.1", port, "app", 30.0)) as client:
        if not client.serves(SUBSCRIPTIONS):
            return None
        answer = client.call(SUBSCRIPTIONS, GetTelemetrySubscriptionsRequest())
    return list(answer.requested_metrics), answer.push_interval_ms


def test_clients_of_every_broker_are_asked_for_the_metrics_that_one_was_told_of(ports):
    assert asked(ports[1]) is None
    assert alter_interval(ports[1], "99") == ErrorCode.INVALID_REQUEST
    assert alter_interval(ports[1], "500") == ErrorCode.NONE
    for each in ports:
        until(lambda each=each: asked(each) == (["m"], 500))


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
