"""Streams groups in a real runtime: a word count's topology, members that heartbeat, and internal topics made on request."""

from __future__ import annotations

from odradek.coordinator.group.config import MemberContext
from odradek.coordinator.group.streams.groups import StreamsGroupConfig, StreamsGroupServices
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.streams_group_heartbeat import (
    RequestTaskIds,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TopicInfo,
    Topology,
)
from tests.coordinator.group.bed import HOST, Answer
from tests.coordinator.group.consumer_bed import ConsumerBed

# The words of ``t`` are counted by word: the topics ``words`` and ``counts`` are internal.
WORD_COUNT = Topology(
    epoch=0,
    subtopologies=[
        Subtopology(subtopology_id="0", source_topics=["t"], repartition_sink_topics=["words"]),
        Subtopology(
            subtopology_id="1",
            repartition_source_topics=[TopicInfo(name="words")],
            state_changelog_topics=[TopicInfo(name="counts")],
        ),
    ],
)
STATELESS = Topology(epoch=0, subtopologies=[Subtopology(subtopology_id="0", source_topics=["t"])])
NOTHING = {"active": {}, "standby": {}, "warmup": {}}


def task_ids(tasks):
    return [RequestTaskIds(subtopology_id=name, partitions=indexes) for name, indexes in tasks.items()]


class StreamsBed(ConsumerBed):
    """``missing`` are the internal topics that the last answer asked for."""

    topology = WORD_COUNT

    def __init__(self, **config):
        self.streams_config = StreamsGroupConfig(**{"assignment_interval_ms": 0, "initial_rebalance_delay_ms": 0, **config})
        self.missing = []
        super().__init__()

    def _streams_services(self):
        return StreamsGroupServices(topics=self.topics, config_of=lambda _: self.streams_config)

    def streams_group(self, group_id="g"):
        return self.shard.streams.find(group_id)

    def beat_streams(self, member_id, epoch, *, group_id="g", version=1, owned=None, **fields):
        """A heartbeat. A joining one is full, unless ``fields`` say otherwise. ``owned`` are tasks by role."""
        if epoch == 0:
            owned = owned or NOTHING
            fields = {"rebalance_timeout_ms": 60_000, "topology": self.topology, "process_id": f"p-{member_id}", **fields}
        if owned is not None:
            owned = {**NOTHING, **owned}
            fields |= {f"{role}_tasks": task_ids(tasks) for role, tasks in owned.items()}
        request = StreamsGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch, **fields)
        answer = Answer()
        context = MemberContext("c", HOST, version)
        self.write(lambda shard: shard.streams_group_heartbeat(context, request), answer.reply)
        outcome = answer.response
        if outcome is None or isinstance(outcome, KafkaError):
            return outcome
        self.missing = list(outcome.missing)
        return outcome.response

    def granted(self, member_id, epoch, **options):
        """The member epoch, and the tasks by role if the answer has them."""
        answer = self.beat_streams(member_id, epoch, **options)
        assert not isinstance(answer, KafkaError), answer
        assert answer.error_code == ErrorCode.NONE
        if answer.active_tasks is None:
            return answer.member_epoch, None
        roles = {"active": answer.active_tasks, "standby": answer.standby_tasks, "warmup": answer.warmup_tasks}
        tasks = {role: {each.subtopology_id: list(each.partitions) for each in given} for role, given in roles.items() if given}
        return answer.member_epoch, tasks

    def denied(self, member_id, epoch, **options):
        answer = self.beat_streams(member_id, epoch, **options)
        assert isinstance(answer, KafkaError), answer
        return answer.code

    def epoch_of(self, member_id):
        return self.streams_group().members[member_id].member_epoch

    def again(self, member_id, **options):
        """The next heartbeat of a member, in its epoch."""
        return self.granted(member_id, self.epoch_of(member_id), **options)

    def make_internal_topics(self):
        """Create what was asked for."""
        for topic in self.missing:
            self.topic(topic.name, topic.partition_count)
        self.missing = []
