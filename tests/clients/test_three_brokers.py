"""Each client library at `odradek cluster` with three brokers: a group, a transaction, and a leader that dies in the midst of it.

All clients live through the same death, each with topics of its own: the killed broker leads what they write to and some of
their coordinators' partitions. It begins to come back while they go on. kafka-python goes on when it is back: it forgets a
request if the coordinator's port refuses the connection (docs/compatibility.md).
"""

from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.load_tool import MissingTool
from tests.campaigns.kafka_tools import java_program
from tests.cli.local_cluster.cluster_process import ClusterProcess
from tests.clients.conftest import CLIENT_TIMEOUT_S
from tests.clients.transformer_process import TransformerProcess, python_program
from tests.languages import go_program

pytestmark = [pytest.mark.xdist_group("three brokers"), pytest.mark.timeout(400)]

SETTINGS = {"broker.session.timeout.ms": 2_000, "broker.heartbeat.interval.ms": 500, "group.initial.rebalance.delay.ms": 0}
PROGRAMS = Path(__file__).with_name("transformers")
KILLED = 1
# The other languages are for a further judge: franz-go alone takes a minute to compile.
CLIENTS = (
    *("librdkafka", "kafka-python", "aiokafka"),
    *(pytest.param(client, marks=pytest.mark.further) for client in ("java", "franz-go")),
)


def program(client, scratch):
    """The first words of the command line of a client's transformer. Raises MissingTool where it cannot be had."""
    if client == "java":
        return java_program.compiled(PROGRAMS / "Transformer.java", scratch)
    if client == "franz-go":
        return go_program.built(PROGRAMS / "transformer.go", scratch)
    return python_program(client)


def create_topics(address, clients):
    """A source and a target for each client, with one record to be transformed."""
    admin = AdminClient({"bootstrap.servers": address})
    places = {"from": [2, 3, 1], "to": [KILLED, 2, 3]}
    topics = [
        NewTopic(f"{kind}-{client}", 1, replica_assignment=[replicas]) for kind, replicas in places.items() for client in clients
    ]
    for future in admin.create_topics(topics).values():
        future.result(CLIENT_TIMEOUT_S)
    producer = Producer({"bootstrap.servers": address})
    for client in clients:
        producer.produce(f"from-{client}", b"in", partition=0)
    assert producer.flush(CLIENT_TIMEOUT_S) == 0


@pytest.fixture(scope="module")
def story(request, tmp_path_factory):
    """(address, how each client ended, why others are left out), when a broker has died and come back."""
    scratch = tmp_path_factory.mktemp("three-brokers")
    settings = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
    programs, left_out = {}, {}
    clients = [item.callspec.params["client"] for item in request.session.items if item.path == request.path]
    # Before any client begins: to build them may take longer than a transaction may.
    for client in clients:
        try:
            programs[client] = program(client, scratch)
        except MissingTool as reason:
            left_out[client] = reason
    if not programs:
        yield "", {}, left_out
        return
    with closing(ClusterProcess(scratch, "--brokers", 3, *settings, data_dir=scratch / "data")) as cluster, ExitStack() as stack:
        address = ",".join(cluster.wait_ready().addresses)
        create_topics(address, programs)
        processes = {
            client: TransformerProcess(stack, [*words, client, address, f"from-{client}", f"to-{client}", "again"])
            for client, words in programs.items()
        }
        for process in processes.values():
            process.wait_for_its_step()
        cluster.ask("kill", KILLED)
        for client, process in processes.items():
            if client != "kafka-python":
                process.go_on()
        cluster.ask("start", KILLED)
        yield address, {client: process.run_to_its_end() for client, process in processes.items()}, left_out


@pytest.mark.parametrize("client", CLIENTS)
def test_a_transaction_of_a_group_survives_the_death_of_the_leader_it_writes_to(story, client):
    address, ended, left_out = story
    if client in left_out:
        raise left_out[client]
    assert ended[client] == "committed"
    config = {"isolation.level": "read_committed", "enable.partition.eof": True, "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": address, "group.id": f"transformers of from-{client}", **config})
    consumer.assign([TopicPartition(f"to-{client}", 0, 0)])
    values = []
    while (message := consumer.poll(CLIENT_TIMEOUT_S)) is not None and message.error() is None:
        values.append(message.value().decode())
    (committed,) = consumer.committed([TopicPartition(f"from-{client}", 0)], CLIENT_TIMEOUT_S)
    consumer.close()
    assert (values, committed.offset) == ([client, client], 1)
