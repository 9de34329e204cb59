"""An authorizer at the controller and at a broker elsewhere: what one of them stores, the other acts on."""

import pytest

from benchmarks.peers import free_ports
from odradek.client.api import Api
from odradek.client.blocking import BlockingClient
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.create_acls import CreateAclsRequest
from odradek.protocol.message_types.describe_acls import DescribeAclsRequest
from odradek.protocol.message_types.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.controller.own_clusters import SETTINGS
from tests.broker.handlers.acl_requests import creation
from tests.broker_process import BrokerProcess
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.campaigns.kafka_tools.odradek_brokers import OdradekBrokers

pytestmark = pytest.mark.timeout(120)

RIGHTS = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:ANONYMOUS"}
OTHER = 11
ACLS = DescribeAclsRequest(1, None, 1, None, None, 1, 1)


class Quorum:
    """What brokers are told of their controller."""

    def __init__(self, port):
        self.voters = f"1@127.0.0.1:{port}"


def described(port):
    client = BlockingClient("127.0.0.1", port, "test", 10.0)
    try:
        return [resource.resource_name for resource in client.call(Api(ApiKey.DESCRIBE_ACLS), ACLS).resources]
    finally:
        client.close()


def test_entries_that_a_broker_forwards_are_in_force_at_all(tmp_path):
    port, controller_port = free_ports(2)
    node = BrokerProcess(
        tmp_path / "one",
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
    brokers = OdradekBrokers(tmp_path / "others", Quorum(controller_port), {OTHER: SETTINGS | RIGHTS})
    try:
        with node:
            brokers.start()
            client = BlockingClient("127.0.0.1", brokers.ports[OTHER], "test", 30.0)
            created = client.call(Api(ApiKey.CREATE_ACLS), CreateAclsRequest([creation("allow User:a READ TOPIC t")]))
            assert [result.error_code for result in created.results] == [0]
            until(lambda: described(brokers.ports[OTHER]) == ["t"])
            assert described(port) == ["t"]
            # The broker itself asks the controller for the topic, which takes it for a super user.
            wanted = MetadataRequest(topics=[MetadataRequestTopic(name="made")])
            until(lambda: not client.call(Api(ApiKey.METADATA, 4, 12), wanted).topics[0].error_code)
            client.close()
    finally:
        brokers.close()
