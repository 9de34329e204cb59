"""A cluster under odradek's own controller, as clients see it: topics of three replicas, produced to and read back."""

import time
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.ports import free_ports
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.record_batch import iter_batches
from tests.broker_process import BrokerProcess
from tests.campaigns.kafka_tools.odradek_brokers import OdradekBrokers
from tests.raw_client import RawClient

SETTINGS = {
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "2000",
    "replica.lag.time.max.ms": "4000",
    "replica.fetch.backoff.ms": "100",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "2",
}
DEADLINE_S = 60


class Quorum:
    """The controller, as brokers are given it."""

    def __init__(self, port):
        self.voters = f"1@127.0.0.1:{port}"


OTHER = 11


@contextmanager
def two_brokers(directory, settings):
    """A broker that has the controller in its process, and brokers of which there is one, OTHER, that forwards to it."""
    port, controller_port = free_ports(2)
    own = {
        "offsets.topic.replication.factor": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
    }
    node = BrokerProcess(directory / "one", settings=SETTINGS | settings | own)
    node.port = port
    brokers = OdradekBrokers(directory / "others", Quorum(controller_port), {OTHER: SETTINGS | settings})
    try:
        with node:
            brokers.start()
            yield node, brokers
    finally:
        brokers.close()


class Clients:
    """Of brokers at ``ports``, by node id."""

    def __init__(self, ports):
        self.ports = dict(ports)
        self.servers = ",".join(f"127.0.0.1:{port}" for port in self.ports.values())
        self.admin = AdminClient({"bootstrap.servers": self.servers})

    def create(self, name, partitions=3, replicas=3):
        topic = NewTopic(name, partitions, replicas, config={"min.insync.replicas": str(max(1, replicas - 1))})
        self.admin.create_topics([topic])[name].result(DEADLINE_S)

    def partitions(self, name):
        try:
            found = self.admin.list_topics(name, timeout=5).topics[name].partitions
        except KafkaException:
            return []
        return [found[index] for index in sorted(found)]

    def leaders(self, name):
        return [partition.leader for partition in self.partitions(name)]

    def in_sync(self, name):
        return [sorted(partition.isrs) for partition in self.partitions(name)]

    def in_sync_at(self, node_id, name):
        """The same as that node has it: others may not have heard of a change yet, and a client asks any of them."""
        with RawClient("127.0.0.1", self.ports[node_id]) as client:
            answer = client.call(ApiKey.METADATA, 9, topics=[{"name": name}])
        partitions = sorted(answer.topics[0].partitions, key=lambda each: each.partition_index)
        return [sorted(each.isr_nodes) for each in partitions]

    def produce(self, name, values, partitions=3):
        producer = Producer({"bootstrap.servers": self.servers, "acks": "all", "linger.ms": "0", "enable.idempotence": True})
        failures = []
        for number, value in enumerate(values):
            told = {"partition": number % partitions, "callback": lambda error, _: error and failures.append(error)}
            producer.produce(name, value, **told)
        assert producer.flush(DEADLINE_S) == 0
        assert failures == []

    def consume(self, name, count, partitions=3):
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "reader", "enable.auto.commit": False})
        consumer.assign([TopicPartition(name, index, 0) for index in range(partitions)])
        found = []
        deadline = time.monotonic() + DEADLINE_S
        while len(found) < count and time.monotonic() < deadline:
            found += [message for message in consumer.consume(500, 0.5) if message.error() is None]
        consumer.close()
        return sorted(message.value() for message in found)

    def until(self, condition, told=lambda: ""):
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, told()
            time.sleep(0.05)


def values_of(name, count):
    return [f"{name}-{number:04}".encode() for number in range(count)]


def batches_by_offset(log_dir):
    """The record batches of a metadata log, or of a copy of it."""
    data = b"".join(path.read_bytes() for path in sorted(log_dir.glob("*.log")))
    return {header.base_offset: data[position : position + header.size_bytes] for position, header in iter_batches(data)}
