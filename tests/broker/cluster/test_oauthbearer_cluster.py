"""Brokers that log in at each other and at their controller by tokens of a file, with the configs of docs/sasl.md."""

import contextlib
import time

import pytest

from benchmarks.ports import free_ports
from odradek.client.api import Api
from odradek.client.blocking import BlockingClient
from odradek.client.login import Login
from odradek.common.config.broker_config import parse_properties
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.message_types.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.security.sasl.jwts import OTHER_KEY, jwks, signed
from tests.broker_process import BrokerProcess
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.project.documents import DOCS, code_blocks

pytestmark = pytest.mark.timeout(120)

[PAGE] = (block for block in code_blocks(DOCS / "sasl.md", "properties") if "token.endpoint.url" in block)

ISSUER = "https://issuer.example.com"


def token_of(user, **claims):
    now_s = int(time.time())
    return {"sub": user, "aud": "kafka", "iss": ISSUER, "iat": now_s, "exp": now_s + 600, **claims}


class Cluster:
    """Broker 1, which is the controller, and broker 2. The listener of the controller is as that between brokers."""

    def __init__(self, directory):
        self._directory = directory
        (directory / "keys.json").write_text(jwks())
        self._ports = free_ports(3)
        self.brokers = [self.make(1), self.make(2)]

    def make(self, node_id, token=None):
        path = self._directory / f"{node_id}.jwt"
        path.write_text(token or signed(token_of("brokers")))
        text = PAGE.replace("https://issuer.example.com/keys", (self._directory / "keys.json").as_uri())
        text = text.replace("file:/run/secrets/broker.jwt", path.as_uri())
        lines = parse_properties(text)
        controller, *ports = self._ports
        of_controller = {key.replace("brokers", "controller"): value for key, value in lines.items() if "listener.name" in key}
        settings = lines | {
            **of_controller,
            "sasl.mechanism.controller.protocol": "OAUTHBEARER",
            "node.id": node_id,
            "process.roles": "broker,controller" if node_id == 1 else "broker",
            "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,BROKERS:SASL_PLAINTEXT",
            "inter.broker.listener.name": "BROKERS",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "authorizer.class.name": "StandardAuthorizer",
            "super.users": "User:brokers",
        }
        broker = BrokerProcess(self._directory / f"broker-{node_id}", settings=settings)
        broker.port = ports[node_id - 1] if node_id <= len(ports) else free_ports(1)[0]
        broker.settings["listeners"] = f"BROKERS://127.0.0.1:{broker.port}"
        if node_id == 1:
            broker.settings["listeners"] += f",CONTROLLER://127.0.0.1:{controller}"
        return broker

    def client(self, node_id=2):
        login = Login("OAUTHBEARER", "brokers", signed(token_of("brokers")))
        return contextlib.closing(BlockingClient("127.0.0.1", self.brokers[node_id - 1].port, "test", 10.0, None, login))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    found = Cluster(tmp_path_factory.mktemp("oauthbearer"))
    with contextlib.ExitStack() as stack:
        for broker in found.brokers:
            stack.enter_context(broker)
        yield found
    assert not [broker for broker in found.brokers if "eyJ" in broker.stderr]


def test_brokers_replicate(cluster):
    with cluster.client() as client:
        wanted = CreatableTopic(name="t", num_partitions=2, replication_factor=2)
        created = client.call(Api(ApiKey.CREATE_TOPICS), CreateTopicsRequest(topics=[wanted], timeout_ms=10_000))
        assert [topic.error_code for topic in created.topics] == [0]

        def in_sync():
            described = client.call(Api(ApiKey.METADATA), MetadataRequest(topics=[MetadataRequestTopic(name="t")]))
            return [sorted(partition.isr_nodes) for partition in described.topics[0].partitions]

        until(lambda: in_sync() == [[1, 2], [1, 2]])


def test_a_broker_whose_token_is_refused_says_so_as_does_the_controller(cluster):
    stranger = cluster.make(3, signed(token_of("brokers"), OTHER_KEY))
    stranger.settings["initial.broker.registration.timeout.ms"] = 1_000
    stranger.spawn()
    assert stranger.wait_ended(20) != 0
    assert 'User:brokers cannot log in with OAUTHBEARER: {\\"status\\":\\"invalid_token\\"}' in stranger.stderr
    assert "the token was refused: its signature is wrong" in cluster.brokers[0].stderr
    assert "eyJ" not in stranger.stderr
