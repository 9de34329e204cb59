"""What holds of partitions after every commit, whatever is asked: histories that are drawn from seeds."""

import pytest

from odradek.controller.metadata.cluster_metadata import PublishingOrder
from odradek.controller.metadata.cluster_view import NO_LEADER
from tests.campaigns.controller_differential.history import History
from tests.campaigns.controller_differential.sides import Ours
from tests.controller.cluster.clusters import Cluster

STEPS = 250


class Rules:
    """A publisher that looks at each change of a partition. ``broken`` are the rules that one has broken."""

    def __init__(self, ours, history):
        self.broken = []
        self.seen = 0
        self._view = ours.cluster.controller.view
        self._history = history
        self._known = {}
        self._leaders = {}

    def publish(self, delta, image):
        for each in delta.topics.values():
            for index, partition in {**each.created, **each.changed}.items():
                self._look(each.topic, index, self._known.get((each.topic.topic_id, index)), partition)
                self._known[each.topic.topic_id, index] = partition
        for topic, partition in image.partitions():
            broker = image.kept.brokers.get(partition.leader)
            if partition.leader != NO_LEADER and (broker is None or broker.fenced):
                self._note(topic, partition, "is led by a broker that is fenced or not there")

    def _look(self, topic, index, before, now):
        self.seen += 1
        leader, isr, elr = now.leader, set(now.isr), set(now.eligible_leader_replicas or ())
        if leader != NO_LEADER and leader not in isr:
            self._note(topic, now, "is led by a replica that is not in sync")
        if not isr <= set(now.replicas) or len(isr) != len(now.isr) or isr & elr:
            self._note(topic, now, "has in-sync replicas that it has not")
        if self._leaders.setdefault((topic.topic_id, index, now.leader_epoch), leader) != leader:
            self._note(topic, now, "has two leaders in one epoch")
        if before is None:
            return
        if now.leader_epoch < before.leader_epoch or now.partition_epoch <= before.partition_epoch:
            self._note(topic, now, "has gone back in its epochs")
        if leader not in (before.leader, NO_LEADER) and now.leader_recovery_state > before.leader_recovery_state:
            self._unclean(topic, before, now)

    def _unclean(self, topic, before, now):
        is_asked = self._history.asking.startswith(("elect unclean", "reassign"))
        if not (is_asked or self._view.allows_unclean(topic) or before.last_known_elr == (now.leader,)):
            self._note(topic, now, "has an unclean leader that nobody has allowed")

    def _note(self, topic, partition, rule):
        self.broken.append(f"{topic.name}-{partition.partition_id} {rule}: {partition}")


@pytest.mark.parametrize("has_elr", [True, False])
@pytest.mark.parametrize("seed", range(6))
async def test_partitions_keep_the_rules_and_a_restart_finds_them_as_they_were(seed, has_elr):
    ours = Ours()
    history = History(ours, None, seed)
    rules = Rules(ours, history)
    ours.cluster.controller.subscribe(rules, PublishingOrder.PARTITIONS)
    await history.run(STEPS, has_elr=has_elr)
    assert rules.broken == []
    assert rules.seen > 50
    again = Cluster(log=ours.cluster.log)
    assert [again.image.topics[topic.name].partitions for topic in ours.image.topics.values()] == [
        topic.partitions for topic in ours.image.topics.values()
    ]
