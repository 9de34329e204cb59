"""Groups that roll over and back at random, while the broker dies and its log fails: no partition is owned by two."""

import random
from collections import Counter

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.group.migrating_clients import COOPERATIVE, EAGER, TOPIC, ClassicClient, ConsumerClient
from tests.coordinator.group.migration_bed import MigrationBed

PARTITIONS = 5
MOST_CLIENTS = 4


class World:
    def __init__(self, seed):
        self.random = random.Random(seed)
        policy = self.random.choice(["bidirectional", "bidirectional", "upgrade"])
        self.bed = MigrationBed(policy, assignment_interval_ms=self.random.choice([0, 0, 1_000]))
        self.bed.topic(TOPIC, PARTITIONS)
        self.protocol = self.random.choice([EAGER, COOPERATIVE])
        self.clients = []
        self.made = 0
        self.kinds = Counter()

    def check(self):
        owners = Counter(index for client in self.clients for index in client.owned)
        doubled = [index for index, count in owners.items() if count > 1]
        assert not doubled, {client.name: sorted(client.owned) for client in self.clients}

    def add(self):
        self.made += 1
        instance_id = f"i{self.made}" if self.random.random() < 0.2 else None
        self.clients.append(self.make(instance_id))

    def make(self, instance_id):
        self.made += 1
        if self.random.random() < 0.5:
            return ConsumerClient(self.bed, f"n{self.made}", instance_id)
        return ClassicClient(self.bed, f"c{self.made}", self.protocol, instance_id)

    def churn(self):
        draw = self.random.random()
        if draw < 0.08 and len(self.clients) < MOST_CLIENTS:
            self.add()
        elif draw < 0.14 and self.clients:
            client = self.clients.pop(self.random.randrange(len(self.clients)))
            if self.random.random() < 0.7:
                client.leave()
        elif draw < 0.17:
            self.restart_static()
        elif draw < 0.19:
            self.bed.log.failures.append(KafkaError(ErrorCode.NOT_COORDINATOR))
        elif draw < 0.20:
            self.bed.restart()
            for client in self.clients:
                client.forget_answers()

    def restart_static(self):
        """A static member's process ends, and the next one speaks whatever protocol."""
        index = next((at for at, client in enumerate(self.clients) if client.instance_id is not None), None)
        if index is not None:
            client = self.clients[index]
            if isinstance(client, ConsumerClient):
                client.owned = set()
                self.bed.beat(client.name, -2, instance_id=client.instance_id)
            self.clients[index] = self.make(client.instance_id)

    def run_round(self):
        for client in self.random.sample(self.clients, len(self.clients)):
            client.step()
            self.check()
        self.bed.advance(self.random.choice([0, 100, 1_000]))
        self.check()
        self.kinds[self.bed.kind()] += 1

    def is_at_rest(self):
        owned = sorted(index for client in self.clients for index in client.owned)
        return owned == list(range(PARTITIONS)) and all(client.is_settled for client in self.clients)


@pytest.mark.parametrize("seed", range(60))
def test_no_partition_is_owned_by_two_and_all_are_owned_when_all_is_at_rest(seed):
    world = World(seed)
    for _ in range(150):
        world.churn()
        world.run_round()
    if not world.clients:
        world.add()
    world.bed.log.failures.clear()
    rounds = 0
    while not world.is_at_rest():
        world.run_round()
        rounds += 1
        assert rounds < 400, [(client.name, sorted(client.owned), client.is_settled) for client in world.clients]
    assert [event for event, _ in world.bed.faults if "append" not in event] == []
