"""Random sets of rules against working clients: what was acknowledged is there, and the broker serves on.

A set has one to three rules, drawn from the seed: any action that a request, a connection, the disk or a point knows, at the APIs
of the clients, with chance and limits. Power is lost only where the broker syncs each record before it is acknowledged
(``log.flush.interval.messages=1``), which is every second lot. A disk may be full. No other error of it is drawn: a log that
cannot be written or synced is out of service until the next start, as it must be.

A producer (librdkafka, idempotent) writes numbered records under it, and a reader reads them and commits. Then the rules are
taken away, and within ``PATIENCE_S`` a record is written, read and committed. A lot of sets has one broker. At its end, and after
a restart, each acknowledged record is in its log exactly once, and the group's offset is not behind what was acknowledged.

Clients that met an error for good are replaced. A set whose clients had to be replaced is counted, and is no violation.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, fields
from random import Random
from time import monotonic
from typing import TYPE_CHECKING, Any

import confluent_kafka

from odradek.testing import Broker

if TYPE_CHECKING:
    from odradek.testing import ThreadedBroker

PATIENCE_S = 20.0
# How long a client works under a set of rules, at most.
_WORK_S = 0.05
_TOPIC = "orders"
_GROUP = "billing"
_APIS = (
    "Produce",
    "Fetch",
    "Metadata",
    "OffsetCommit",
    "FindCoordinator",
    "OffsetFetch",
    "ApiVersions",
    "ListOffsets",
    "InitProducerId",
)
_READER = {"fetch.wait.max.ms": 5, "fetch.error.backoff.ms": 1, "auto.offset.reset": "earliest"}
# Errors that clients try again after, and some that they do not.
_ERRORS = (
    "NOT_LEADER_OR_FOLLOWER",
    "NOT_ENOUGH_REPLICAS",
    "NOT_COORDINATOR",
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "REQUEST_TIMED_OUT",
    "UNKNOWN_SERVER_ERROR",
    "KAFKA_STORAGE_ERROR",
    "TOPIC_AUTHORIZATION_FAILED",
    "MESSAGE_TOO_LARGE",
)

_ACTIONS = ("error", "delay_ms", "drop", "close", "stall", "throttle_ms", "split", "pause_ms", "refuse", "restart", "power_loss")
_ENDS = ("restart", "power_loss")


def draw_rule(random: Random, *, loses_power: bool = False) -> dict[str, Any]:
    """A rule of the vocabulary, in its declarative form. ``loses_power``: a machine may end, not only a process."""
    rule: dict[str, Any] = {}
    end = random.choice(("restart", "power_loss")) if loses_power else "restart"
    kind = random.choices(("request", "connection", "point", "append", "sync"), (12, 1, 1, 1, 1))[0]
    if kind == "connection":
        rule["refuse"] = True
    elif kind == "point":
        rule["point"] = random.choice(("Records", "Offsets"))
        rule[end] = random.choice(("before", "torn", "after"))
    elif kind == "append":
        rule["disk"] = kind
        rule |= random.choice(({"error": "ENOSPC"}, {"delay_ms": 10}, {end: "before"}, {end: "torn"}, {end: "after"}))
    elif kind == "sync":
        rule["disk"] = kind
        rule |= random.choice(({"delay_ms": 10}, {end: "before"}, {end: "after"}))
    else:
        if random.random() < 0.8:
            rule["api"] = random.sample(_APIS, random.randint(1, 3))
        action = random.choice(("error", "delay_ms", "drop", "close", "stall", "throttle_ms", "split", "pause_ms", end, None))
        match action:
            case "error":
                rule["error"] = random.choice(_ERRORS)
            case "delay_ms" | "throttle_ms" | "pause_ms":
                rule[action] = random.choice((1, 10, 40))
            case "drop" | "stall":
                rule[action] = True
            case "close" | "restart" | "power_loss":
                rule[action] = random.choice(("before", "after"))
            case "split":
                rule["split"] = random.choice((1, 3, [1], [4, 9], [2, 5, 11]))
    if random.random() < 0.5 or end in rule or "disk" in rule:
        rule["times"] = random.randint(1, 3)
    if random.random() < 0.3:
        rule["after"] = random.randint(0, 3)
    if random.random() < 0.5:
        rule |= {"probability": random.choice((0.1, 0.5, 0.9)), "seed": random.getrandbits(32)}
    return rule


def _action(rule: dict[str, Any]) -> str:
    """Where it stands and what it does, in two words."""
    place = next((str(rule[key]) for key in ("disk", "point") if key in rule), "request")
    return f"{place} {next((key for key in _ACTIONS if key in rule), 'watch')}"


def draw_rules(random: Random, *, loses_power: bool) -> list[dict[str, Any]]:
    """A set. Nothing ends the broker while its disk refuses what is written: a start there may end, or find a log offline."""
    rules = [draw_rule(random, loses_power=loses_power) for _ in range(random.randint(1, 3))]
    refusals = [rule for rule in rules if "disk" in rule and "error" in rule]
    return refusals if refusals and any(end in rule for rule in rules for end in _ENDS) else rules


@dataclass
class Counts:
    """What a run has come to."""

    sets: int = 0
    fired: int = 0
    acknowledged: int = 0
    refused: int = 0
    committed: int = 0
    replaced: int = 0
    violations: list[str] = field(default_factory=list)
    by_action: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        """Count what another run has come to."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def __str__(self) -> str:
        return (
            f"{self.sets} sets of rules, {self.fired} firings; {self.acknowledged} records acknowledged, {self.refused} refused, "
            f"{self.committed} commits, {self.replaced} times new clients; violations {len(self.violations)}\n"
            + ", ".join(f"{action} {hits}" for action, hits in sorted(self.by_action.items()))
        )


class Lot:
    """One broker, and the clients that work under its sets of rules."""

    def __init__(self, broker: ThreadedBroker, random: Random, counts: Counts, *, loses_power: bool) -> None:
        self._broker = broker
        self._loses_power = loses_power
        self._random = random
        self._counts = counts
        self._acknowledged: list[int] = []
        self._number = 0
        self._committed = 0
        self._rules: list[dict[str, Any]] = []
        self._new_clients()

    def run_set(self) -> None:
        """Work under one set of rules, take it away, and see that the broker serves on."""
        counts = self._counts
        self._rules = draw_rules(self._random, loses_power=self._loses_power)
        faults = self._broker.faults.load(self._rules)
        self._produce(3, _WORK_S)
        self._consumer.poll(_WORK_S)
        # A commit covers up what was lost of the one before it.
        if self._random.random() < 0.7:
            self._consumer.commit(offsets=[self._place()], asynchronous=True)
            self._open_commits += 1
        for fault in faults:
            fault.remove()
        counts.sets += 1
        for rule, fault in zip(self._rules, faults, strict=True):
            counts.fired += fault.hits
            counts.by_action[_action(rule)] += fault.hits
        if not self._serves():
            counts.violations.append(f"it does not serve after {self._rules}")
        counts.refused += self._refused
        self._refused = 0

    def check(self) -> None:
        """Add what is lost, or there twice, to the violations."""
        found = [int(record.value or b"") for record in self._broker.records(_TOPIC)]
        there = set(found)
        lost = [number for number in self._acknowledged if number not in there]
        if lost:
            self._counts.violations.append(f"lost: {lost[:5]}, {len(lost)} in all, of a lot that ended with {self._rules}")
        if len(there) != len(found):
            self._counts.violations.append(f"written twice: {len(found) - len(there)}, of a lot that ended with {self._rules}")
        offset = self._broker.groups[_GROUP].offsets.get((_TOPIC, 0), -1) if self._committed else -1
        if self._committed and offset < self._committed:
            self._counts.violations.append(f"the group is at {offset}, and {self._committed} was acknowledged")

    def close(self) -> None:
        """Let go of the clients."""
        self._counts.acknowledged += len(self._acknowledged)
        self.close_clients()

    def close_clients(self) -> None:
        """What they have not sent is not sent."""
        self._producer.purge()
        self._producer.flush(0)
        self._consumer.close()

    def _new_clients(self) -> None:
        shared = {
            "bootstrap.servers": self._broker.bootstrap_servers,
            "reconnect.backoff.ms": 1,
            "reconnect.backoff.max.ms": 5,
            "retry.backoff.ms": 1,
            "retry.backoff.max.ms": 5,
            "socket.timeout.ms": 300,
            "log_level": 0,
        }
        self._refused = 0
        self._producer = confluent_kafka.Producer(
            {**shared, "enable.idempotence": True, "linger.ms": 0, "request.timeout.ms": 200, "message.timeout.ms": 60_000}
        )
        self._open_commits = 0
        self._consumer = confluent_kafka.Consumer(
            {**shared, "group.id": _GROUP, "enable.auto.commit": False, "on_commit": self._note_commit, **_READER}
        )
        self._consumer.assign([confluent_kafka.TopicPartition(_TOPIC, 0, 0)])

    def _produce(self, count: int, within_s: float) -> int:
        """How many of these records were acknowledged in time; the others may be later."""
        before = len(self._acknowledged)
        for _ in range(count):
            number = self._number
            self._number += 1
            try:
                self._producer.produce(_TOPIC, str(number).encode(), partition=0, on_delivery=self._note(number))
            except confluent_kafka.KafkaException:
                self._refused += 1
        self._producer.flush(within_s)
        return len(self._acknowledged) - before

    def _note(self, number: int) -> Any:
        def note(error: object, _message: object) -> None:
            if error is None:
                self._acknowledged.append(number)
            else:
                self._refused += 1

        return note

    def _note_commit(self, error: object, places: list[confluent_kafka.TopicPartition]) -> None:
        self._open_commits = max(self._open_commits - 1, 0)
        if error is None and not places[0].error:
            self._committed = max(self._committed, places[0].offset)

    def _place(self) -> confluent_kafka.TopicPartition:
        return confluent_kafka.TopicPartition(_TOPIC, 0, len(self._acknowledged))

    def _commits(self) -> bool:
        """Whether how many records were acknowledged can be committed."""
        place = self._place()
        until = monotonic() + PATIENCE_S
        # The client may yet send one again that was refused under the rules, behind this one.
        while self._open_commits and monotonic() < until:
            self._consumer.poll(0.01)
        # The next commit covers up what was lost of this one.
        if not self._keeps_commits(until):
            return False
        while monotonic() < until:
            with suppress(confluent_kafka.KafkaException):
                [done] = self._consumer.commit(offsets=[place], asynchronous=False)
                if done.error is None:
                    self._committed = place.offset
                    self._counts.committed += 1
                    return True
        return False

    def _keeps_commits(self, until: float) -> bool:
        """Whether the group's offset can be read. One behind what was acknowledged is a violation."""
        while monotonic() < until:
            with suppress(confluent_kafka.KafkaException):
                [found] = self._consumer.committed([confluent_kafka.TopicPartition(_TOPIC, 0)], timeout=1)
                if found.error is None:
                    if self._committed and found.offset < self._committed:
                        self._counts.violations.append(
                            f"the group is at {found.offset}, and {self._committed} was acknowledged, after {self._rules}"
                        )
                    return True
        return False

    def _reads(self, number: int) -> bool:
        """Whether the reader comes to this record."""
        until = monotonic() + PATIENCE_S
        while monotonic() < until:
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None and int(message.value()) == number:
                return True
        return False

    def _serves(self) -> bool:
        if self._works():
            return True
        # A client that met an error which it may not try again after is at its end; another one is not.
        self._counts.replaced += 1
        self.close_clients()
        self._new_clients()
        return self._works()

    def _works(self) -> bool:
        self._producer.flush(PATIENCE_S)
        return bool(self._produce(1, PATIENCE_S)) and self._reads(self._number - 1) and self._commits()


def run(seed: int, sets: int) -> Counts:
    """Run so many sets of rules against one broker, with one restart at the end."""
    random, counts = Random(seed), Counts()
    loses_power = random.random() < 0.5
    configs = {"log.flush.interval.messages": 1} if loses_power else {}
    with Broker(topics={_TOPIC: 1}, configs=configs, seed=random.getrandbits(32)) as broker:
        lot = Lot(broker, random, counts, loses_power=loses_power)
        while counts.sets < sets and not counts.violations:
            lot.run_set()
        lot.check()
        broker.stop()
        broker.start()
        lot.check()
        lot.close()
    return counts
