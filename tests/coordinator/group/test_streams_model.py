"""Random histories of a streams group: members that come, stay, leave, vanish and lose answers, topics that grow, reloads.

After each step:

    no task is active in two members, as they know it
    a process has a task in one role only, as the coordinator knows it
    the group is the same after a reload

In the end, all members settle: every task is active in one member, and the group is Stable.
"""

import random
from itertools import chain

from odradek.protocol.errors import ErrorCode, KafkaError
from tests.cases import case
from tests.coordinator.group.streams_bed import NOTHING, StreamsBed
from tests.coordinator.group.test_streams_heartbeat import snapshot

# The last two lost the answer with a task that was released in the same epoch.
SEEDS = (*range(10), 59, 152)
STEPS = 150
ROLES = ("active", "standby", "warmup")


class Client:
    """A member as it knows itself. It closes tasks when it is told to, and reports them closed with its next heartbeat."""

    def __init__(self, member_id, process_id, instance_id):
        self.member_id = member_id
        self.process_id = process_id
        self.instance_id = instance_id
        self.epoch = 0
        self.owned = dict(NOTHING)

    def active(self):
        return {(subtopology, index) for subtopology, indexes in self.owned["active"].items() for index in indexes}

    def beat(self, bed, *, is_lost):
        owned = NOTHING if self.epoch == 0 else self.owned
        fields = {"instance_id": self.instance_id, "process_id": self.process_id, "rebalance_timeout_ms": 1_000_000}
        answer = bed.beat_streams(self.member_id, self.epoch, owned=owned, **fields)
        if isinstance(answer, KafkaError):
            assert answer.code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID), answer
            self.epoch, self.owned = 0, dict(NOTHING)
        elif not is_lost:
            self.epoch = answer.member_epoch
            if answer.active_tasks is not None:
                told = (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks)
                self.owned = {
                    role: {each.subtopology_id: list(each.partitions) for each in tasks}
                    for role, tasks in zip(ROLES, told, strict=True)
                }


class History:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.bed = StreamsBed(num_standby_replicas=self.random.randrange(3))
        self.partitions = 2
        self.bed.topic("t", self.partitions)
        self.clients = []
        self.made = 0

    def step(self):
        draw = self.random.random()
        if draw < 0.08 or not self.clients:
            self.join()
        elif draw < 0.8:
            client = self.random.choice(self.clients)
            # A static member that is fenced waits for its own session to end, as in Kafka.
            client.beat(self.bed, is_lost=client.instance_id is None and self.random.random() < 0.1)
        elif draw < 0.85:
            self.go(self.random.choice(self.clients))
        elif draw < 0.88 and self.partitions < 6:
            self.grow()
        elif draw < 0.91:
            replicas = self.random.randrange(3)
            self.bed.streams_config = self.bed.streams_config._replace(num_standby_replicas=replicas)
        elif draw < 0.95:
            before = snapshot(self.bed.streams_group()) if self.bed.streams_group() else None
            self.bed.restart()
            assert before is None or snapshot(self.bed.streams_group()) == before
        self.bed.make_internal_topics()
        self.check()

    def join(self):
        self.made += 1
        instance_id = f"i{self.made}" if self.random.random() < 0.3 else None
        client = Client(f"m{self.made}", f"p{self.random.randrange(4)}", instance_id)
        self.clients.append(client)
        client.beat(self.bed, is_lost=False)

    def go(self, client):
        """Leave, for a while if it is a static member, or be silent for the session."""
        draw = self.random.random()
        if client.epoch > 0 and client.instance_id is not None and draw < 0.5:
            self.bed.beat_streams(client.member_id, -2, instance_id=client.instance_id)
            self.made += 1
            client.member_id, client.epoch, client.owned = f"m{self.made}", 0, dict(NOTHING)
            client.beat(self.bed, is_lost=False)
            return
        self.clients.remove(client)
        if client.epoch > 0 and draw < 0.8:
            self.bed.beat_streams(client.member_id, -1, instance_id=client.instance_id)
        else:
            self.bed.advance(30_000)
            for other in self.clients:
                other.beat(self.bed, is_lost=False)
            self.bed.advance(20_000)

    def grow(self):
        """More partitions need internal topics with more, so an application starts anew. Here they grow together."""
        self.partitions += 1
        for name in ("t", "words", "counts"):
            if name in self.bed.topics.by_name:
                self.bed.topic(name, self.partitions)

    def check(self):
        group = self.bed.streams_group()
        if group is None:
            return
        # A member that was removed does not know it yet.
        active = list(chain.from_iterable(each.active() for each in self.clients if each.member_id in group.members))
        assert len(active) == len(set(active)), "a task is active twice"
        for task, holder in group.active_holders.items():
            process = group.members[holder].process_id
            replicas = [group.standby_processes(task), group.warmup_processes(task)]
            held = sum(process in each for each in replicas)
            # A member that becomes the standby of its own active task has both until the active task is closed.
            closing = {
                (subtopology, index)
                for member in group.members.values()
                for subtopology, indexes in member.pending_revocation.active.items()
                for index in indexes
            }
            assert held == 0 or task in closing, (task, process)

    def settle(self):
        for _ in range(20):
            for client in self.clients:
                client.beat(self.bed, is_lost=False)
            self.bed.make_internal_topics()
            self.check()
        if not self.clients:
            return
        active = sorted(chain.from_iterable(client.active() for client in self.clients))
        assert active == [(subtopology, index) for subtopology in "01" for index in range(self.partitions)]
        assert self.bed.streams_group().state == "Stable"


def test_no_task_is_run_twice_and_all_are_run_in_the_end():
    for seed in SEEDS:
        with case(f"seed {seed}"):
            history = History(seed)
            for _ in range(STEPS):
                history.step()
            history.settle()
            assert history.bed.faults == []
