"""An authorizer at the controller and at a broker elsewhere: what one of them stores, the other acts on."""

import pytest

from benchmarks.peers import free_ports
from odradek.client.api import Api
from odradek.client.blocking import BlockingClient
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from odradek.protocol.message_types.create_acls import CreateAclsRequest
from odradek.protocol.message_types.describe_acls import DescribeAclsRequest
from odradek.protocol.message_types.describe_client_quotas import DescribeClientQuotasRequest
from odradek.protocol.message_types.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.controller.own_clusters import SETTINGS, Quorum
from tests.broker.handlers.acl_requests import creation
from tests.broker_process import BrokerProcess
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.campaigns.kafka_tools.odradek_brokers import OdradekBrokers

pytestmark = pytest.mark.timeout(120)

RIGHTS = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:ANONYMOUS"}
OTHER = 11
ACLS = DescribeAclsRequest(1, None, 1, None, None, 1, 1)


def quotas(port):
    client = BlockingClient("127.0.0.1", port, "test", 10.0)
    try:
        answer = client.call(Api(ApiKey.DESCRIBE_CLIENT_QUOTAS), DescribeClientQuotasRequest())
    finally:
        client.close()
    return {entry.entity[0].entity_name: [tuple(value) for value in entry.values] for entry in answer.entries}


def described(port):
    client = BlockingClient("127.0.0.1", port, "test", 10.0)
    try:
        return [resource.resource_name for resource in client.call(Api(ApiKey.DESCRIBE_ACLS), ACLS).resources]
    finally:
        client.close()


@pytest.fixture(scope="module")
def ports(tmp_path_factory):
    """Of the broker that has the controller in its process, and of the other."""
    scratch = tmp_path_factory.mktemp("rights")
    port, controller_port = free_ports(2)
    node = BrokerProcess(
        scratch / "one",
        settings=SETTINGS
        | RIGHTS
        | {
            "offsets.topic.replication.factor": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        },
    )
    node.port = port
    brokers = OdradekBrokers(scratch / "others", Quorum(controller_port), {OTHER: SETTINGS | RIGHTS})
    try:
        with node:
            brokers.start()
            yield port, brokers.ports[OTHER]
    finally:
        brokers.close()


@pytest.fixture
def client(ports):
    """Of the broker that forwards to the controller."""
    client = BlockingClient("127.0.0.1", ports[1], "test", 30.0)
    yield client
    client.close()


def test_entries_that_a_broker_forwards_are_in_force_at_all(ports, client):
    created = client.call(Api(ApiKey.CREATE_ACLS), CreateAclsRequest([creation("allow User:a READ TOPIC t")]))
    assert [result.error_code for result in created.results] == [0]
    until(lambda: described(ports[1]) == ["t"])
    assert described(ports[0]) == ["t"]
    # The broker itself asks the controller for the topic, which takes it for a super user.
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name="made")])
    until(lambda: not client.call(Api(ApiKey.METADATA, 4, 12), wanted).topics[0].error_code)


def test_quotas_that_a_broker_forwards_are_known_to_all(ports, client):
    entry = RequestEntryData([RequestEntityData("user", "a")], [OpData("producer_byte_rate", 5.0)])
    altered = client.call(Api(ApiKey.ALTER_CLIENT_QUOTAS), AlterClientQuotasRequest([entry]))
    assert [(result.error_code, result.entity) for result in altered.entries] == [(0, (("user", "a"),))]
    until(lambda: quotas(ports[1]) == {"a": [("producer_byte_rate", 5.0)]})
    assert quotas(ports[0]) == quotas(ports[1])
    refused = client.call(Api(ApiKey.ALTER_CLIENT_QUOTAS), AlterClientQuotasRequest([entry._replace(entity=[])]))
    assert [result.error_message for result in refused.entries] == ["Invalid empty client quota entity"]
