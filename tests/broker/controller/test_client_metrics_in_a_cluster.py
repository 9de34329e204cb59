"""A subscription to client metrics that a broker forwards: the controller decides on it, and every broker asks its clients."""

from contextlib import closing

import pytest

from benchmarks.peers import free_ports
from odradek.client.api import Api
from odradek.client.blocking import BlockingClient
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.protocol.message_types.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.controller.own_clusters import SETTINGS, Quorum
from tests.broker_process import BrokerProcess
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.campaigns.kafka_tools.odradek_brokers import OdradekBrokers

pytestmark = pytest.mark.timeout(120)

OTHER = 11


SUBSCRIPTIONS = Api(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS)


def call(port, api_key, request):
    client = BlockingClient("127.0.0.1", port, "app", 30.0)
    try:
        return client.call(Api(api_key), request)
    finally:
        client.close()


def alter(port, interval_ms):
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


def test_clients_of_every_broker_are_asked(tmp_path):
    port, controller_port = free_ports(2)
    listeners = {
        "offsets.topic.replication.factor": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
    }
    node = BrokerProcess(tmp_path / "one", settings=SETTINGS | listeners)
    node.port = port
    brokers = OdradekBrokers(tmp_path / "others", Quorum(controller_port), {OTHER: SETTINGS})
    try:
        with node:
            brokers.start()
            other = brokers.ports[OTHER]
            assert asked(other) is None
            assert alter(other, "99") == ErrorCode.INVALID_REQUEST
            assert alter(other, "500") == ErrorCode.NONE
            for each in (port, other):
                until(lambda each=each: asked(each) == (["m"], 500))
            assert brokers.stop(OTHER) == 0
    finally:
        brokers.close()
    assert '"level": "error"' not in node.stderr
