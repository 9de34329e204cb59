"""A controller and brokers that log in at each other, each in a process of its own, with the configs of docs/sasl.md."""

import contextlib
import subprocess
import sys
from urllib.request import urlopen

import pytest

from benchmarks.ports import free_ports
from odradek.client.api import Api
from odradek.client.blocking import BlockingClient
from odradek.client.login import Login
from odradek.common.config.broker_config import parse_properties
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.message_types.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker_process import BrokerProcess, command_environment
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.project.documents import DOCS, code_blocks

pytestmark = pytest.mark.timeout(120)

CONTROLLER_ID = 100
SECRETS = {"brokers": "brokers-secret", "alice": "alice-secret"}
WRONG = "another-secret"
# Renewed at 85 to 95 % of this; a session that is renewed sooner than 1 s after the last is refused.
SESSION_MS = 1_500
RENEWED = "kafka_server_socket_server_metrics_successful_reauthentication_total"
[PAGE] = (block for block in code_blocks(DOCS / "sasl.md", "properties") if "inter.broker.listener.name" in block)


def settings_of(certificates, password=SECRETS["brokers"]):
    """Of every node, as on the page: SCRAM over TLS at the controller, PLAIN between brokers."""
    text = PAGE.replace("certs/", f"{certificates.directory}/").replace(' password="brokers-secret"', f' password="{password}"')
    return parse_properties(text) | {"connections.max.reauth.ms": SESSION_MS}


def words(settings):
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


class Controller:
    """Its first user comes with the directory."""

    def __init__(self, directory, port, settings):
        self.voters = f"{CONTROLLER_ID}@127.0.0.1:{port}"
        own = settings | {"process.roles": "controller", "node.id": CONTROLLER_ID, "listeners": f"CONTROLLER://127.0.0.1:{port}"}
        place = ["--data-dir", str(directory / "controller"), *words(own)]
        user = f"SCRAM-SHA-512=[name=brokers,password={SECRETS['brokers']}]"
        self.stderr_path = directory / "controller.stderr"
        odradek = [sys.executable, "-m", "odradek"]
        environment = command_environment()
        subprocess.run([*odradek, "format", *place, "--add-scram", user], check=True, env=environment, capture_output=True)
        with self.stderr_path.open("w") as stderr:
            self.process = subprocess.Popen([*odradek, "serve", *place], stdout=subprocess.PIPE, stderr=stderr, env=environment)

    @property
    def stderr(self):
        return self.stderr_path.read_text()

    def stop(self):
        self.process.terminate()
        self.process.communicate()


class Cluster:
    """Brokers 1 and 2, started; ``make`` gives others."""

    def __init__(self, directory, certificates):
        self._directory = directory
        self._certificates = certificates
        [port] = free_ports(1)
        self.controller = Controller(directory, port, settings_of(certificates))
        self.brokers = [self.make(1, arguments=("--http-port", "0")), self.make(2)]

    def make(self, node_id, password=SECRETS["brokers"], arguments=(), **configs):
        settings = settings_of(self._certificates, password) | {
            "process.roles": "broker",
            "node.id": node_id,
            "controller.quorum.voters": self.controller.voters,
            "offsets.topic.replication.factor": 2,
            **configs,
        }
        broker = BrokerProcess(self._directory / f"broker-{node_id}", settings=settings, arguments=arguments)
        [broker.port] = free_ports(1)
        broker.settings["listeners"] = f"BROKERS://127.0.0.1:{broker.port}"
        return broker

    def renewed(self):
        """How many sessions clients of broker 1 have renewed."""
        with urlopen(f"{self.brokers[0].http_url}/metrics") as page:
            lines = page.read().decode().splitlines()
        [line] = [line for line in lines if line.startswith(f"{RENEWED} ")]
        return float(line.split()[1])

    def logs(self):
        return [self.controller.stderr, *(broker.stderr for broker in self.brokers)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, certificates):
    found = Cluster(tmp_path_factory.mktemp("sasl"), certificates)
    with contextlib.ExitStack() as stack:
        stack.callback(found.controller.stop)
        for broker in found.brokers:
            stack.enter_context(broker)
        yield found
    told = [secret for secret in (*SECRETS.values(), WRONG) for log in found.logs() if secret in log]
    assert not told


def client_of(broker, user):
    return BlockingClient(broker.host, broker.port, "test", 10.0, None, Login("PLAIN", user, SECRETS[user]))


def create(client, topic):
    """The error of a topic that is replicated, and has a partition led by each broker."""
    wanted = CreatableTopic(name=topic, num_partitions=2, replication_factor=2)
    created = client.call(Api(ApiKey.CREATE_TOPICS), CreateTopicsRequest(topics=[wanted], timeout_ms=10_000))
    return created.topics[0].error_code


def in_sync(client, topic):
    """The replicas of each partition that are in sync."""
    described = client.call(Api(ApiKey.METADATA), MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
    return [sorted(partition.isr_nodes) for partition in described.topics[0].partitions]


def test_brokers_replicate_and_go_on_when_their_sessions_are_over(cluster, new_name):
    topic = new_name()
    with contextlib.closing(client_of(cluster.brokers[0], "brokers")) as client:
        assert create(client, topic) == ErrorCode.NONE
    # Fetchers fetch, and log in again in time: a session that was over would be told in the log.
    renewed = cluster.renewed()
    until(lambda: cluster.renewed() >= renewed + 2)
    with contextlib.closing(client_of(cluster.brokers[1], "brokers")) as client:
        assert in_sync(client, topic) == [[1, 2], [1, 2]]
    assert not [line for log in cluster.logs() for line in log.splitlines() if "has expired" in line or "lost" in line]


def test_the_controller_knows_for_whom_a_broker_asks(cluster, new_name):
    """Brokers are super users, and alice is not."""
    with contextlib.closing(client_of(cluster.brokers[0], "alice")) as client:
        assert create(client, new_name()) == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_broker_with_a_wrong_password_keeps_trying_and_both_ends_say_why(cluster):
    stranger = cluster.make(3, WRONG, **{"initial.broker.registration.timeout.ms": 1_500})
    stranger.spawn()
    assert stranger.wait_ended(20) != 0
    refused = "User:brokers cannot log in with SCRAM-SHA-512: Authentication failed during authentication"
    assert refused in stranger.stderr
    lines = [line for line in cluster.controller.stderr.splitlines() if "authentication failed" in line]
    assert len(lines) > 1
    assert all('"user": "brokers"' in line and "the password is wrong" in line for line in lines), lines
    assert WRONG not in stranger.stderr
