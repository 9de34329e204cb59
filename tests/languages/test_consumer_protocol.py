"""Members of the consumer protocol (KIP-848) in Java and Go, and a classic one, in one group."""

import subprocess
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_process import BrokerProcess, command_environment
from tests.campaigns.kafka_tools import java_program
from tests.languages import go_program

MEMBERS = Path(__file__).with_name("members")
PARTITIONS = 6
PATIENCE_S = 40.0
SETTINGS = {
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 200,
}


@pytest.fixture
def broker(tmp_path):
    with BrokerProcess(tmp_path / "broker", settings=SETTINGS) as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_topics([NewTopic("tea", PARTITIONS, 1)])["tea"].result(PATIENCE_S)
        yield broker


class Member:
    """A program that tells, line by line, how many partitions it ``has`` and what it has ``read``."""

    def __init__(self, command):
        self.has = 0
        self.read = []
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=command_environment()
        )
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self):
        for line in self._process.stdout:
            what, _, told = line.strip().partition(" ")
            if what == "has":
                self.has = int(told)
            elif what == "read":
                self.read.append(told)

    def close(self):
        if self._process.poll() is None:
            self._process.stdin.write("\n")
            self._process.stdin.close()
        status = self._process.wait(PATIENCE_S)
        self._thread.join()
        self._process.stdout.close()
        assert status == 0


class Classic:
    """librdkafka with the classic protocol, in a thread."""

    def __init__(self, address):
        self.has = 0
        self.read = []
        self._address = address
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._consume, daemon=True)
        self._thread.start()

    def _consume(self):
        config = {"bootstrap.servers": self._address, "group.id": "g", "auto.offset.reset": "earliest"}
        consumer = Consumer({**config, "partition.assignment.strategy": "cooperative-sticky", "heartbeat.interval.ms": 200})
        consumer.subscribe(["tea"])
        while not self._ends.is_set():
            message = consumer.poll(0.05)
            if message is not None and message.error() is None:
                self.read.append(message.value().decode())
            self.has = len(consumer.assignment())
        consumer.close()

    def close(self):
        self._ends.set()
        self._thread.join(PATIENCE_S)


@contextmanager
def running(*members):
    try:
        yield
    finally:
        for member in members:
            member.close()


def wait_until(condition, what):
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, what()
        time.sleep(0.05)


def produce(broker, numbers):
    producer = Producer({"bootstrap.servers": broker.address})
    for number in numbers:
        producer.produce("tea", str(number), partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0


def share(*members):
    """Wait until all have some of the partitions, and together have each."""
    shares = lambda: [member.has for member in members]  # noqa: E731
    wait_until(lambda: sum(shares()) == PARTITIONS and all(shares()), shares)


def have_read(count, *members):
    """Wait until this many records are read, each once."""
    read = lambda: Counter(value for member in members for value in member.read)  # noqa: E731
    wait_until(lambda: len(read()) == count, lambda: f"{len(read())} of {count} records")
    assert read() == Counter(map(str, range(count)))


@pytest.fixture(scope="module")
def java(tmp_path_factory):
    """Starts a member in Java, which subscribes by a pattern that the broker resolves."""
    command = java_program.compiled(MEMBERS / "Member.java", tmp_path_factory.mktemp("java"))
    return lambda broker: Member([*command, broker.address, "g", "te.", "i"])


@pytest.fixture(scope="module")
def go(tmp_path_factory):
    """Starts a member in Go."""
    command = go_program.built(MEMBERS / "member.go", tmp_path_factory.mktemp("go"))
    return lambda broker: Member([*command, broker.address, "g", "tea"])


@pytest.mark.timeout(300)
def test_members_of_either_protocol_read_every_record_once_while_they_come_and_go(broker, java, go):
    first = java(broker)
    with running(first):
        share(first)
        produce(broker, range(60))
        have_read(60, first)
        second = go(broker)
        with running(second):
            share(first, second)
            third = Classic(broker.address)
            with running(third):
                share(first, second, third)
                produce(broker, range(60, 120))
                have_read(120, first, second, third)
                # A static member is away, and keeps its partitions.
                first.close()
                produce(broker, range(120, 180))
                again = java(broker)
                with running(again):
                    wait_until(lambda: again.has == first.has, lambda: (again.has, first.has))
                    have_read(180, first, second, third, again)
