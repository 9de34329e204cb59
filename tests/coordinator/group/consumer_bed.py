"""Consumer groups in a real runtime: topics that tests make, an assignor, and members that heartbeat."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from odradek.coordinator.group.config import MemberContext
from odradek.coordinator.group.consumer.groups import ConsumerGroupConfig, ConsumerGroupServices
from odradek.coordinator.group.consumer.topics import SubscribedTopic
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    RequestTopicPartitions,
)
from tests.coordinator.group.bed import HOST, Answer, Bed


@dataclass
class MemoryTopics:
    """Topics by name; their ids count up."""

    by_name: dict[str, SubscribedTopic] = field(default_factory=dict)
    version: int = 0
    made: int = 0

    def find(self, name):
        return self.by_name.get(name)

    def name_of(self, topic_id):
        return next((topic.name for topic in self.by_name.values() if topic.topic_id == topic_id), None)

    def names(self):
        return list(self.by_name)


class ConsumerBed(Bed):
    def __init__(self, **config):
        self.topics = MemoryTopics()
        self.group_config = ConsumerGroupConfig(**config)
        self.beside = []
        self.holds_back = False
        super().__init__()

    def _new_id(self):
        return f"id-{next(self._ids)}"

    def _services(self):
        return ConsumerGroupServices(topics=self.topics, config_of=lambda _: self.group_config, run_beside=self._run_beside)

    def _run_beside(self, work, then):
        def run():
            then(work(lambda: None))

        if self.holds_back:
            self.beside.append(run)
        else:
            run()

    def run_what_is_beside(self):
        waiting, self.beside = self.beside, []
        for run in waiting:
            run()
        self.turn()

    # --------------------------------------------------------------------------------------------------------- topics

    def topic(self, name, partitions):
        """Make a topic, or give it more partitions; None of them takes it away."""
        topics = self.topics
        known = topics.by_name.get(name)
        topics.version += 1
        if known is None:
            topics.made += 1
        topic_id = UUID(int=topics.made) if known is None else known.topic_id
        topics.by_name[name] = SubscribedTopic(topic_id, name, partitions)
        self.shard.note_topics([name], has_new=known is None)
        return topic_id

    def drop_topic(self, name):
        del self.topics.by_name[name]
        self.topics.version += 1
        self.shard.note_topics([name], has_new=False)

    # ------------------------------------------------------------------------------------------------------- requests

    def beat(self, member_id, epoch, *, group_id="g", client_id="c", version=1, turn=True, owned=None, **fields):
        """A heartbeat; None while its answer waits. A joining one is full, unless ``fields`` say otherwise."""
        if epoch == 0:
            fields = {"rebalance_timeout_ms": 60_000, **fields}
            owned = owned or {}
            if "subscribed_topic_regex" not in fields:
                fields.setdefault("subscribed_topic_names", ["t"])
        reported = None
        if owned is not None:
            reported = [
                RequestTopicPartitions(topic_id=self.topics.by_name[name].topic_id, partitions=indexes)
                for name, indexes in owned.items()
            ]
        request = ConsumerGroupHeartbeatRequest(
            group_id=group_id, member_id=member_id, member_epoch=epoch, topic_partitions=reported, **fields
        )
        answer = Answer()
        context = MemberContext(client_id, HOST, version)
        self.write(lambda shard: shard.consumer_group_heartbeat(context, request), answer.reply, turn=turn)
        return answer.response

    def accepted(self, member_id, epoch, **options):
        """The member epoch, and the assignment by topic name if the answer has one."""
        answer = self.beat(member_id, epoch, **options)
        assert isinstance(answer, ConsumerGroupHeartbeatResponse), answer
        assert answer.error_code == ErrorCode.NONE
        if answer.assignment is None:
            return answer.member_epoch, None
        assigned = {self.topics.name_of(each.topic_id): list(each.partitions) for each in answer.assignment.topic_partitions}
        return answer.member_epoch, assigned

    def refused(self, member_id, epoch, **options):
        answer = self.beat(member_id, epoch, **options)
        assert isinstance(answer, KafkaError), answer
        return answer.code
