"""A controller and brokers that speak to each other by TLS alone, in processes of their own."""

import contextlib
import subprocess
import sys

import pytest

from benchmarks.ports import free_ports
from odradek.protocol.api_keys import ApiKey
from tests.broker_process import BrokerProcess, command_environment
from tests.raw_client import fetch_fields
from tests.tls import TlsClient

CONTROLLER_ID = 100
MAP = {"listener.security.protocol.map": "SSL:SSL,CONTROLLER:SSL"}


def serve_controller(directory, port, certificates):
    settings = {
        "process.roles": "controller",
        "node.id": CONTROLLER_ID,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
        **MAP,
        **certificates.settings(client_auth="required"),
    }
    told = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "odradek", "serve", "--data-dir", str(directory), *told]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=command_environment())


@pytest.fixture
def cluster(tmp_path, certificates):
    """Two brokers of a cluster, whose third member, not started yet, trusts others: (brokers, make)."""
    (controller_port, *ports) = free_ports(4)
    controller = serve_controller(tmp_path / "controller", controller_port, certificates)

    def make(node_id, **ssl_configs):
        settings = {
            "process.roles": "broker",
            "node.id": node_id,
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"{CONTROLLER_ID}@127.0.0.1:{controller_port}",
            "listeners": f"SSL://127.0.0.1:{ports[node_id - 1]}",
            "security.inter.broker.protocol": "SSL",
            "offsets.topic.replication.factor": 2,
            **MAP,
            **certificates.settings(client_auth="required"),
            **ssl_configs,
        }
        broker = BrokerProcess(tmp_path / f"broker-{node_id}", settings=settings)
        broker.port = ports[node_id - 1]
        return broker

    with contextlib.ExitStack() as stack:
        stack.callback(controller.communicate)
        stack.callback(controller.terminate)
        yield [stack.enter_context(make(node_id)) for node_id in (1, 2)], make


def test_brokers_replicate_by_tls_alone_and_trust_no_strangers(cluster, certificates, new_name):
    brokers, make = cluster
    topic = new_name()
    context = certificates.client_context("orders")
    with TlsClient(brokers[0], context) as first, TlsClient(brokers[1], context) as second:
        configs = [{"name": "min.insync.replicas", "value": "2"}]
        asked = {"name": topic, "num_partitions": 1, "replication_factor": 2, "configs": configs}
        first.call(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
        metadata = first.call(ApiKey.METADATA, 12, topics=[{"name": topic}])
        [partition] = metadata.topics[0].partitions
        leader = (first, second)[partition.leader_id - 1]
        # Acknowledged by both.
        assert leader.produce(topic, b"by TLS").error_code == 0
        found = leader.call(ApiKey.FETCH, 12, **fetch_fields(topic, 0)).responses[0].partitions[0]
        assert (found.high_watermark, sorted(partition.isr_nodes)) == (1, [1, 2])
    own = {"keystore": "stray.pem", "truststore": "strangers.pem"}
    stores = {f"ssl.{store}.location": certificates.path(name) for store, name in own.items()}
    stranger = make(3, **stores, **{"initial.broker.registration.timeout.ms": 1500})
    stranger.spawn()
    assert stranger.wait_ended(20) != 0
    assert "certificate" in stranger.stderr.lower()
