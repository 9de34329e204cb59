"""Consumer groups in a real runtime: topics that tests make, an assignor, and members that heartbeat."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
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

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass
class MemoryTopics:
    """Topics by name; their ids count up."""

    by_name: dict[str, SubscribedTopic] = field(default_factory=dict)
    version: int = 0
    made: int = 0

    def find(self, name: str) -> SubscribedTopic | None:
        return self.by_name.get(name)

    def name_of(self, topic_id: UUID) -> str | None:
        return next((topic.name for topic in self.by_name.values() if topic.topic_id == topic_id), None)

    def names(self) -> Sequence[str]:
        return list(self.by_name)


class ConsumerBed(Bed):
    def __init__(self, **config: int) -> None:
        self.topics = MemoryTopics()
        self.group_config = ConsumerGroupConfig(**config)
        self.beside: list[Callable[[], None]] = []
        self.holds_back = False
        super().__init__()

    def _new_id(self) -> str:
        return f"id-{next(self._ids)}"

    def _services(self) -> ConsumerGroupServices:
        return ConsumerGroupServices(topics=self.topics, config_of=lambda _: self.group_config, run_beside=self._run_beside)

    def _run_beside(self, work: Callable[[Callable[[], None]], Any], then: Callable[[Any], None]) -> None:
        def run() -> None:
            then(work(lambda: None))

        if self.holds_back:
            self.beside.append(run)
        else:
            run()

    def run_what_is_beside(self) -> None:
        waiting, self.beside = self.beside, []
        for run in waiting:
            run()
        self.turn()

    # --------------------------------------------------------------------------------------------------------- topics

    def topic(self, name: str, partitions: int) -> UUID:
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

    def drop_topic(self, name: str) -> None:
        del self.topics.by_name[name]
        self.topics.version += 1
        self.shard.note_topics([name], has_new=False)

    # ------------------------------------------------------------------------------------------------------- requests

    def beat(
        self,
        member_id: str,
        epoch: int,
        *,
        group_id: str = "g",
        client_id: str = "c",
        version: int = 1,
        turn: bool = True,
        owned: Mapping[str, Sequence[int]] | None = None,
        **fields: Any,
    ) -> ConsumerGroupHeartbeatResponse | KafkaError | None:
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

    def accepted(self, member_id: str, epoch: int, **options: Any) -> tuple[int, dict[str, list[int]] | None]:
        """The member epoch, and the assignment by topic name if the answer has one."""
        answer = self.beat(member_id, epoch, **options)
        assert isinstance(answer, ConsumerGroupHeartbeatResponse), answer
        assert answer.error_code == ErrorCode.NONE
        if answer.assignment is None:
            return answer.member_epoch, None
        assigned = {self.topics.name_of(each.topic_id): list(each.partitions) for each in answer.assignment.topic_partitions}
        return answer.member_epoch, assigned

    def refused(self, member_id: str, epoch: int, **options: Any) -> ErrorCode:
        answer = self.beat(member_id, epoch, **options)
        assert isinstance(answer, KafkaError), answer
        return answer.code
