"""A Kafka Streams application under test: its topics, its instances' processes, and the sums that it must arrive at."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks import kafka_jars
from tests.clients.conftest import CLIENT_TIMEOUT_S
from tests.needed import needed

if TYPE_CHECKING:
    from contextlib import ExitStack

SOURCE = Path(__file__).with_name("Sums.java")
PATIENCE_S = 120.0
USERS = {f"u{number}": ("rome", "oslo", "bern", "lima")[number % 4] for number in range(16)}
# Short times: a killed instance is missed, and its transaction ends, within seconds.
SETTINGS = {
    "group.streams.heartbeat.interval.ms": 300,
    "group.streams.min.heartbeat.interval.ms": 300,
    "group.streams.session.timeout.ms": 5_000,
    "group.streams.min.session.timeout.ms": 5_000,
    "group.streams.assignment.interval.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 500,
    "group.streams.num.standby.replicas": 1,
}
_OF_AN_INSTANCE = ("session.timeout.ms=6000", "heartbeat.interval.ms=500", "producer.transaction.timeout.ms=5000")


def compiled(scratch: Path, version: str) -> list[str]:
    """The first words of an instance's command line, with Kafka Streams of this version. Raises MissingTool without a JDK."""
    classpath = f"{kafka_jars.cached(version, 'kafka-streams')}/*"
    command = [needed("javac"), "-proc:none", "-cp", classpath, "-d", str(scratch), str(SOURCE)]
    subprocess.run(command, check=True, timeout=PATIENCE_S)
    flags = ("-XX:+UseSerialGC", "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
    return [kafka_jars.java(), *flags, "-cp", f"{scratch}{os.pathsep}{classpath}", SOURCE.stem]


class Instance:
    """One process of the application. ``states`` are those it has told, the last one behind."""

    def __init__(self, command: list[str]) -> None:
        self.states: list[str] = []
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.states.extend(line.strip() for line in self._process.stdout)

    def is_running(self) -> bool:
        return self.states[-1:] == ["RUNNING"]

    def leave(self) -> int:
        """End its input, and return its exit status."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(PATIENCE_S)

    def kill9(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def close(self) -> None:
        """Kill it unless it has ended."""
        self.kill9()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


class Application:
    """An application that sums up orders by city. ``owed`` are the sums of all orders so far."""

    def __init__(
        self, addresses: str, name: str, command: list[str], scratch: Path, stack: ExitStack, replication_factor: int = 1
    ) -> None:
        self.owed: Counter[str] = Counter()
        self.orders = 0
        self._addresses = addresses
        self._name = name
        self._command = command
        self._scratch = scratch
        self._stack = stack
        self._replicas = replication_factor
        # The partitioner of Java's producers, as the join needs a user's order in the user's partition.
        self._producer = Producer(
            {
                "bootstrap.servers": addresses,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "linger.ms": 5,
                "log_level": 0,
            }
        )
        admin = AdminClient({"bootstrap.servers": addresses, "log_level": 0})
        topics = [NewTopic(f"{name}-{suffix}", 4, replication_factor) for suffix in ("users", "orders", "sums")]
        for created in admin.create_topics(topics).values():
            created.result(CLIENT_TIMEOUT_S)
        for user, city in USERS.items():
            self._producer.produce(f"{name}-users", key=user, value=city)
        assert self._producer.flush(PATIENCE_S) == 0

    def instance(self, protocol: str) -> Instance:
        """Start an instance with a state of its own."""
        directory = self._scratch / f"state-{len(list(self._scratch.iterdir()))}"
        directory.mkdir()
        settings = [f"group.protocol={protocol}", f"replication.factor={self._replicas}", "num.standby.replicas=1"]
        # The broker has the timeouts and the standbys of streams groups.
        own = settings[:2] if protocol == "streams" else [*settings, *_OF_AN_INSTANCE[:2]]
        command = [*self._command, self._addresses, self._name, str(directory), *own, _OF_AN_INSTANCE[2]]
        instance = Instance(command)
        self._stack.callback(instance.close)
        return instance

    def begin_to_order(self, count: int) -> None:
        """Produce orders, and do not wait for the broker."""
        for number in range(self.orders, self.orders + count):
            user = f"u{number * 7 % len(USERS)}"
            self.owed[USERS[user]] += number % 10
            self._producer.produce(f"{self._name}-orders", key=str(number), value=f"{user}:{number % 10}")
            self._producer.poll(0)
        self.orders += count

    def order(self, count: int) -> None:
        """Produce orders, and wait until all so far are acknowledged."""
        self.begin_to_order(count)
        assert self._producer.flush(PATIENCE_S) == 0

    def wait_for_sums(self) -> None:
        """Read the committed sums until they are those owed; fail if that takes too long.

        Each city's sum only rises: no order is counted twice and taken back, or lost and counted again.
        """
        options = {"group.id": "judge", "isolation.level": "read_committed", "enable.auto.commit": False, "log_level": 0}
        consumer = Consumer({"bootstrap.servers": self._addresses, **options})
        told: list[tuple[str, int]] = []
        deadline = time.monotonic() + PATIENCE_S
        try:
            consumer.assign([TopicPartition(f"{self._name}-sums", index, 0) for index in range(4)])
            while dict(told) != dict(self.owed):
                assert time.monotonic() < deadline, (dict(told), self.owed)
                message = consumer.poll(0.2)
                if message is not None and message.error() is None:
                    told.append((message.key().decode(), int(message.value())))
        finally:
            consumer.close()
        for city in self.owed:
            assert all(before <= after for before, after in pairwise(value for each, value in told if each == city))


def wait_until_running(*instances: Instance) -> None:
    """Wait until all have their tasks."""
    deadline = time.monotonic() + PATIENCE_S
    while not all(instance.is_running() for instance in instances):
        assert time.monotonic() < deadline, [instance.states for instance in instances]
        time.sleep(0.05)
