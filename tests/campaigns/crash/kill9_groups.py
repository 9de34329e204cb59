"""Repeated kill -9 of the broker, at random moments, under four groups of real clients, some of which are rebalancing.

Before each kill every group rests, or a member joins or leaves, so that the kill falls before, during or after a rebalance.
After each restart:

    no commit lost           each committed offset is at least the one that the killed broker acknowledged
    no group stuck           within a deadline, exactly the expected members share each group's partitions
    no needless rebalance    a group that rested keeps its generation and its member ids; on a machine too busy to start the
                             broker while sessions last, clients begin new ones
    no epoch goes back       a group of the consumer protocol, and each of its members, has no lower epoch than before

At the end every record has been processed, and no partition had two owners in one generation.

With ``--brokers 3`` each kill is of one broker of a cluster, in turn, and the others take its groups over.

    python -m tests.campaigns.crash.kill9_groups --kills 20
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.campaigns.crash.support import run_with_kills, seeded
from tests.campaigns.crash.three_brokers import ThreeBrokers
from tests.clients.groups.group import Group
from tests.clients.groups.members import ConsumerProtocolMember
from tests.clients.groups.observer import wait_until

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable

    from tests.broker_process import BrokerProcess

PARTITIONS = 6
# (make, assignor): one group each.
KINDS = (
    ("kafka-python", "range"),
    ("aiokafka", "roundrobin"),
    ("librdkafka", "cooperative-sticky"),
    (ConsumerProtocolMember.make, ""),
)
FEWEST_MEMBERS, MOST_MEMBERS = 1, 3
# Longer than a restart, so that a restart expires no session; short enough to wait for when a LeaveGroup is lost with the broker.
SESSION_TIMEOUT_MS = 8_000
SETTINGS = {
    "group.min.session.timeout.ms": 1_000,
    "group.consumer.min.session.timeout.ms": 1_000,
    "group.consumer.session.timeout.ms": SESSION_TIMEOUT_MS,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.assignment.interval.ms": 0,
}
# librdkafka begins a new session, as another member, if it misses its coordinator for as long as one lasts. Half of that is for
# clients to find the coordinator again.
LONGEST_RESTART_S = SESSION_TIMEOUT_MS / 2_000
LONGEST_WAIT_FOR_KILL_S = 0.5
SETTLE_TIMEOUT_S = 40.0
FEED_INTERVAL_S = 0.05
REST, JOIN, LEAVE = "rests", "has somebody join", "has somebody leave"
# A group that rested, on a machine that was too busy to start the broker in time.
SESSIONS_END = "rests, and its sessions end"


class Feeder:
    """Produces each record once, to every partition of the topics, across kills."""

    def __init__(self, address: str, topics: Iterable[str]) -> None:
        config = {
            "bootstrap.servers": address,
            "enable.idempotence": True,
            "linger.ms": 1,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
        }
        self._producer = Producer(config)
        self._topics = tuple(topics)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self.rounds = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop when every produced record is acknowledged."""
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(SETTLE_TIMEOUT_S) == 0

    def _feed(self) -> None:
        while not self._stopping.wait(FEED_INTERVAL_S):
            for topic in self._topics:
                for partition in range(PARTITIONS):
                    self._producer.produce(topic, b"%d" % self.rounds, partition=partition)
            self.rounds += 1
            self._producer.poll(0)


class LivingGroup:
    """A group whose members join and leave."""

    def __init__(self, group: Group, make: str, assignor: str) -> None:
        self.group = group
        self.make = make
        self._assignor = assignor
        self._members = {}
        self._number = 0
        self.action = JOIN
        self.granted: dict[int, int] = {}
        self._before: tuple[int, set[str]] = (0, set())

    def begin(self) -> None:
        """Have the first two members join."""
        self.join()
        self.join()

    def join(self) -> None:
        self._number += 1
        name = f"{self.make}-{self._number}"
        self._members[name] = self.group.member(
            self.make, name, assignor=self._assignor, session_timeout_ms=SESSION_TIMEOUT_MS, max_poll_interval_ms=20_000
        )

    def settle(self) -> None:
        """Wait until exactly the expected members share the partitions: the group is not stuck."""
        self.group.journal.wait_until_shared(*self._members, partitions=PARTITIONS, timeout_s=SETTLE_TIMEOUT_S)
        self.group.observer.wait_until_state(self.group.group_id, "Stable")

    def act(self, rng: random.Random) -> None:
        """Start the group's event before the next kill, without waiting for its end."""
        self._before = self._standing()
        choices = [REST]
        if len(self._members) < MOST_MEMBERS:
            choices.append(JOIN)
        if len(self._members) > FEWEST_MEMBERS:
            choices.append(LEAVE)
        self.action = rng.choice(choices)
        if self.action == JOIN:
            self.join()
        elif self.action == LEAVE:
            self._members.pop(rng.choice(sorted(self._members))).begin_to_stop()

    def note_kill(self) -> None:
        """Remember what the killed broker acknowledged."""
        self.granted = dict(self.group.journal.granted)

    def check_start(self, away_s: float) -> None:
        """The broker has begun again."""
        self.check_commits()
        if away_s > LONGEST_RESTART_S and self.action == REST:
            self.action = SESSIONS_END

    def check_commits(self) -> None:
        committed = self.group.observer.committed(self.group.group_id)
        lost = {
            partition: (offset, committed.get((self.group.topic, partition)))
            for partition, offset in self.granted.items()
            if committed.get((self.group.topic, partition), -1) < offset
        }
        assert lost == {}, f"{self.make}: commits lost (acknowledged, fetched): {lost}"

    def check_rest(self) -> None:
        """A group without an event is unchanged after the kill."""
        if self.action == REST:
            assert self._standing() == self._before, f"{self.make} rebalanced without need: {self.group.causes()[-3:]}"

    def end(self, rounds: int) -> None:
        """Check that all records are processed and committed, and that the group's invariants hold."""
        self.group.ends = dict.fromkeys(range(PARTITIONS), rounds)
        self.group.journal.wait_until_processed(self.group.ends, SETTLE_TIMEOUT_S)
        self.group.check()

    def summary(self) -> str:
        """The last generation, and the rebalances by reason."""
        causes = self.group.causes()
        counts = ", ".join(f"{cause} {causes.count(cause)}" for cause in sorted(set(causes)))
        return f"generation {self.group.generation()} ({counts})"

    def _standing(self) -> tuple[int, set[str]]:
        return self.group.generation(), self.group.observer.member_ids(self.group.group_id)


class LivingConsumerGroup(LivingGroup):
    """One of the consumer protocol: its generation is the group's epoch."""

    # The group's and its members' epochs.
    _epochs: tuple[int, dict[str, int]] = (0, {})

    def begin(self) -> None:
        """Have the second member join once the first has its partitions.

        librdkafka's second heartbeat may say that it owns nothing, before it takes the partitions that the first one gave it. If
        the other member joins right then, the broker gives it half of them, and both have these for a moment.
        """
        self.join()
        self.group.journal.wait_until_shared(*self._members, partitions=PARTITIONS, timeout_s=SETTLE_TIMEOUT_S)
        self.join()

    def settle(self) -> None:
        self.group.journal.wait_until_shared(*self._members, partitions=PARTITIONS, timeout_s=SETTLE_TIMEOUT_S)
        wait_until(lambda: self._described().group_state == "Stable", f"{self.make} is stable")

    def act(self, rng: random.Random) -> None:
        self._epochs = self._all_epochs()
        super().act(rng)

    def check_start(self, away_s: float) -> None:
        super().check_start(away_s)
        group, members = self._all_epochs()
        assert group >= self._epochs[0], f"{self.make}: the group's epoch was {self._epochs[0]}, and is {group}"
        back = {who: (epoch, members[who]) for who, epoch in self._epochs[1].items() if members.get(who, epoch) < epoch}
        assert back == {}, f"{self.make}: epochs of members went back (before, now): {back}"

    def summary(self) -> str:
        return f"epoch {self._all_epochs()[0]}"

    def _standing(self) -> tuple[int, set[str]]:
        epoch, members = self._all_epochs()
        return epoch, set(members)

    def _all_epochs(self) -> tuple[int, dict[str, int]]:
        group = self._described()
        return int(group.group_epoch), {str(each.member_id): int(each.member_epoch) for each in group.members}

    def _described(self) -> Any:
        return self.group.observer.describe_consumer_group(self.group.group_id)


def kill_under_groups(broker: BrokerProcess | ThreeBrokers, rng: random.Random, kills: int) -> list[LivingGroup]:
    """Run all kills on a running broker; returns the groups when all checks have held."""
    topics = [f"of-kind-{number}" for number in range(len(KINDS))]
    _create(broker, topics)
    with ExitStack() as stack:
        groups = [
            (LivingConsumerGroup if make == ConsumerProtocolMember.make else LivingGroup)(
                Group(broker, topic, PARTITIONS, stack), make, assignor
            )
            for topic, (make, assignor) in zip(topics, KINDS, strict=True)
        ]
        for living in groups:
            living.begin()
        feeder = Feeder(broker.address, topics)
        feeder.start()
        for kill in range(kills):
            for living in groups:
                living.settle()
            _kill_once(broker, rng, groups, kill + 1)
        for living in groups:
            living.settle()
            living.check_rest()
        feeder.stop()
        for living in groups:
            living.end(feeder.rounds)
            living.group.begin_to_stop()
    return groups


def _kill_once(broker: BrokerProcess | ThreeBrokers, rng: random.Random, groups: list[LivingGroup], number: int) -> None:
    for living in groups:
        # For the previous kill: a group that rested is unchanged.
        living.check_rest()
        living.act(rng)
    delay_s = rng.uniform(0, LONGEST_WAIT_FOR_KILL_S)
    # The moment of the kill is random: no condition is waited for.
    time.sleep(delay_s)
    broker.kill9()
    killed_s = time.monotonic()
    for living in groups:
        living.note_kill()
    broker.start()
    away_s = time.monotonic() - killed_s
    for living in groups:
        living.check_start(away_s)
    print(f"kill {number} after {delay_s:.3f} s:", "; ".join(f"{living.make} {living.action}" for living in groups), flush=True)


def _create(broker: BrokerProcess | ThreeBrokers, topics: Iterable[str]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    for future in admin.create_topics([NewTopic(topic, PARTITIONS, -1) for topic in topics]).values():
        future.result(SETTLE_TIMEOUT_S)


def summary(groups: list[LivingGroup]) -> str:
    """A line for each group."""
    lines = []
    for living in groups:
        records = sum(living.group.ends.values())
        lines.append(f"{living.make}: {records} records, {living.summary()}")
    return "\n".join(lines)


def main() -> None:
    """Run it and report."""

    def run(broker: BrokerProcess | ThreeBrokers, kills: int) -> str:
        return summary(kill_under_groups(broker, seeded("groups"), kills))

    holds = "no commit lost, no group stuck, none rebalanced without need, no epoch went back"
    run_with_kills(__doc__, SETTINGS, run, holds, ThreeBrokers)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
