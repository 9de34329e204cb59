"""Share groups in a real runtime: topics that tests make, members that heartbeat, and a share coordinator that obeys."""

from __future__ import annotations

from odradek.coordinator.group.config import MemberContext
from odradek.coordinator.group.share import offsets
from odradek.coordinator.group.share.groups import ShareGroupConfig, ShareGroupServices
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.coordinator.group.bed import HOST, Answer
from tests.coordinator.group.consumer_bed import ConsumerBed


class ShareBed(ConsumerBed):
    """``states`` are the states that the share coordinator was asked to initialize, and has not."""

    def __init__(self, **config):
        self.share_config = ShareGroupConfig(**config)
        self.states = []
        super().__init__()

    def _share_services(self):
        return ShareGroupServices(topics=self.topics, config_of=lambda _: self.share_config)

    def share_group(self, group_id="g"):
        return self.shard.share.find(group_id)

    def operate(self, operation):
        """The outcome of an operation on the share groups."""
        answer = Answer()
        self.write(lambda shard: operation(shard.share), answer.reply)
        return answer.response

    def initialize(self):
        """Let the share coordinator initialize what it was asked for."""
        asked, self.states = self.states, []
        for states in asked:
            self.operate(lambda groups, states=states: offsets.note_initialized(groups, "g", states.partitions()))

    def beat_share(self, member_id, epoch, *, group_id="g", client_id="c", names=None, **fields):
        if epoch == 0 and names is None:
            names = ["t"]
        request = ShareGroupHeartbeatRequest(
            group_id=group_id, member_id=member_id, member_epoch=epoch, subscribed_topic_names=names, **fields
        )
        answer = Answer()
        context = MemberContext(client_id, HOST, 1)
        self.write(lambda shard: shard.share_group_heartbeat(context, request), answer.reply)
        outcome = answer.response
        if outcome is None or isinstance(outcome, KafkaError):
            return outcome
        if outcome.states is not None:
            self.states.append(outcome.states)
        return outcome.response

    def granted(self, member_id, epoch, **options):
        """The member epoch, and the assignment by topic name if the answer has one."""
        answer = self.beat_share(member_id, epoch, **options)
        assert not isinstance(answer, KafkaError), answer
        assert answer.error_code == ErrorCode.NONE
        if answer.assignment is None:
            return answer.member_epoch, None
        assigned = {self.topics.name_of(each.topic_id): list(each.partitions) for each in answer.assignment.topic_partitions}
        return answer.member_epoch, assigned

    def denied(self, member_id, epoch, **options):
        answer = self.beat_share(member_id, epoch, **options)
        assert isinstance(answer, KafkaError), answer
        return answer.code
