"""A share group under test: its topic, the processes of its members, what they told, and what must hold of it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from odradek.protocol.api_keys import ApiKey
from tests.broker_process import command_environment
from tests.campaigns.kafka_tools import java_program
from tests.clients.conftest import CLIENT_TIMEOUT_S
from tests.languages import go_program
from tests.raw_client import RawClient

if TYPE_CHECKING:
    from contextlib import ExitStack

MEMBERS = Path(__file__).with_name("members")
PARTITIONS = 3
PATIENCE_S = 60.0
# One record of ten is rejected, two are released once.
WORDS = ("accept", "accept", "release", "accept", "accept", "accept", "release", "accept", "reject", "accept")
# Short intervals: a member gets its partitions by its second heartbeat. The lock outlives no test.
SETTINGS = {
    "group.share.heartbeat.interval.ms": 200,
    "group.share.min.heartbeat.interval.ms": 200,
    "group.share.session.timeout.ms": 3_000,
    "group.share.min.session.timeout.ms": 3_000,
    "group.share.record.lock.duration.ms": 4_000,
    "group.share.min.record.lock.duration.ms": 1_000,
    "group.share.assignment.interval.ms": 0,
}


def program(make: str, scratch: Path) -> list[str]:
    """The first words of a member's command line. Raises MissingTool where it cannot be had."""
    if make == "java":
        return java_program.compiled(MEMBERS / "ShareMember.java", scratch)
    if make == "franz-go":
        return go_program.built(MEMBERS / "share_member.go", scratch)
    return [sys.executable, "-m", "tests.clients.shares.share_member"]


class ShareMemberProcess:
    """A member's process, and its lines as (word, partition, offset, rest)."""

    def __init__(self, command: list[str]) -> None:
        self.told: list[tuple[str, int, int, str]] = []
        self.holds = threading.Event()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=command_environment()
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, _, rest = line.strip().partition(" ")
            # A kill may cut the last line off.
            if word in {"got", "done", "lost"} and line.endswith("\n"):
                partition, offset, *others = rest.split(" ")
                self.told.append((word, int(partition), int(offset), " ".join(others)))
            elif word == "holds":
                self.holds.set()

    def kill9(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def leave(self) -> int:
        """End its input, and return its exit status."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        status = self._process.wait(PATIENCE_S)
        self._reader.join()
        return status

    def close(self) -> None:
        """Kill it unless it has ended."""
        self.kill9()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


class ShareGroup:
    """A group that reads its topic from the beginning. ``records`` is the number of records produced."""

    def __init__(self, addresses: str, name: str, stack: ExitStack, replication_factor: int = 1) -> None:
        self.addresses = addresses
        self.name = self.topic = name
        self.records = 0
        self.members: list[ShareMemberProcess] = []
        self._stack = stack
        self._producer = Producer(
            {"bootstrap.servers": addresses, "enable.idempotence": True, "linger.ms": 5, "reconnect.backoff.max.ms": 200}
        )
        admin = AdminClient({"bootstrap.servers": addresses})
        topic = NewTopic(name, PARTITIONS, replication_factor)
        admin.create_topics([topic])[name].result(CLIENT_TIMEOUT_S)
        earliest = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
        for altered in admin.incremental_alter_configs(
            [ConfigResource(ConfigResource.Type.GROUP, name, incremental_configs=[earliest])]
        ).values():
            altered.result(CLIENT_TIMEOUT_S)

    def member(self, command: list[str], *, mode: str = "work") -> ShareMemberProcess:
        """Start a member."""
        member = ShareMemberProcess([*command, self.addresses, self.name, self.topic, mode])
        self._stack.callback(member.close)
        self.members.append(member)
        return member

    def fill(self, count: int) -> None:
        """Produce ``count`` records, and wait for them."""
        for number in range(self.records, self.records + count):
            self._producer.produce(self.topic, WORDS[number % len(WORDS)], partition=number % PARTITIONS)
        assert self._producer.flush(PATIENCE_S) == 0
        self.records += count

    def told(self, word: str) -> Counter[tuple[int, int, str]]:
        """Return how often members have told this word of (partition, offset, rest)."""
        return Counter(line[1:] for line in self._lines() if line[0] == word)

    def ended(self) -> Counter[tuple[int, int]]:
        """Return how often the broker has confirmed the end of each record: accepted or rejected."""
        ended: Counter[tuple[int, int]] = Counter()
        for (partition, offset, word), count in self.told("done").items():
            if word in {"accept", "reject"}:
                ended[partition, offset] += count
        return ended

    def places(self) -> set[tuple[int, int]]:
        """Return the partition and the offset of each record."""
        return {(number % PARTITIONS, number // PARTITIONS) for number in range(self.records)}

    def lag(self) -> int | None:
        """Return the number of records that the group has not ended, by any broker that knows; None if none does."""
        topics = [{"topic_name": self.topic, "partitions": list(range(PARTITIONS))}]
        groups = [{"group_id": self.name, "topics": topics}]
        for address in self.addresses.split(","):
            host, _, port = address.partition(":")
            try:
                with RawClient(host, int(port)) as client:
                    response = client.call(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=groups)
            except OSError:
                continue
            lags = [each.lag for topic in response.groups[0].topics for each in topic.partitions]
            if min(lags, default=-1) >= 0:
                return sum(lags)
        return None

    def wait_until(self, condition, what) -> None:
        """Wait until a condition holds of what members told."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline_s, what()
            time.sleep(0.05)

    def wait_until_worked(self) -> None:
        """Wait until the broker has the end of each record, and members have told of it."""
        self.wait_until(lambda: self.told("got") and self.lag() == 0, lambda: f"lag {self.lag()}, {self._missing()}")
        self.wait_until(lambda: self._unconfirmed() | self.ended().keys() >= self.places(), self._missing)

    def _unconfirmed(self) -> set[tuple[int, int]]:
        """Return records with an acknowledgement whose outcome is unknown: the broker or the member died meanwhile."""
        unconfirmed = set()
        for member in self.members:
            known = Counter(line[1:3] for line in member.told if line[0] == "done")
            got = Counter(line[1:3] for line in member.told if line[0] == "got")
            unconfirmed |= (got - known).keys()
        return unconfirmed

    def _missing(self) -> str:
        missing = sorted(self.places() - self.ended().keys())
        last = [(line[0], *line[3:]) for line in self._lines() if line[1:3] in missing[:1]]
        return f"{len(missing)} of {self.records} records have not ended: {missing[:10]}; told of the first: {last}"

    def _lines(self) -> list[tuple[str, int, int, str]]:
        return [line for member in self.members for line in tuple(member.told)]

    def check(self) -> None:
        """Each record has ended once, as its value says; without a confirmation only if its acknowledgement was lost."""
        ended = self.ended()
        assert [place for place, count in ended.items() if count > 1] == []
        assert self.places() - self._unconfirmed() - ended.keys() == set()
        for partition, offset, word in self.told("done"):
            expected = WORDS[(offset * PARTITIONS + partition) % len(WORDS)]
            assert word == expected or (expected, word) == ("release", "accept")
