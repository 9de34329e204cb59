"""Groups with members of both protocols: classic members whose subscriptions and assignments can be read."""

from __future__ import annotations

import struct

from odradek.coordinator.group.config import MigrationPolicy
from odradek.coordinator.group.offset_commit import commit_offsets
from odradek.coordinator.group.offset_fetch import fetch_offsets
from odradek.protocol.coordinator_records.consumer_protocol import assigned_partitions
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.group.bed import Answer
from tests.coordinator.group.consumer_bed import ConsumerBed
from tests.coordinator.group.offsets_bed import COMMIT, FETCH


def _string(text):
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def _partitions(by_topic):
    topics = b"".join(_string(name) + struct.pack(f">i{len(each)}i", len(each), *each) for name, each in by_topic.items())
    return struct.pack(">i", len(by_topic)) + topics


def subscription(names=("t",), owned=None, *, version=3, rack_id=""):
    """What a member says as it joins. Only since version 1 it can say what it owns, since 3 where it is."""
    head = struct.pack(">hi", version, len(names)) + b"".join(map(_string, names)) + struct.pack(">i", -1)
    rest = _partitions(owned or {}) if version > 0 else b""
    rest += struct.pack(">i", -1) if version > 1 else b""
    rest += (_string(rack_id) if rack_id else struct.pack(">h", -1)) if version > 2 else b""
    return head + rest


def assignment(by_topic, user_data=None):
    """What a leader assigns to a member."""
    data = struct.pack(">i", -1) if user_data is None else struct.pack(">i", len(user_data)) + user_data
    return struct.pack(">h", 1) + _partitions(by_topic) + data


class MigrationBed(ConsumerBed):
    def __init__(self, policy="bidirectional", **config):
        super().__init__(**{"assignment_interval_ms": 0, "migration_policy": MigrationPolicy(policy), **config})

    def set_policy(self, policy):
        self.group_config = self.group_config._replace(migration_policy=MigrationPolicy(policy))

    def joins(self, member_id="", names=("t",), owned=None, *, protocols=("range",), **options):
        """A classic member's JoinGroup; one without a member id comes again with the one that it is given."""
        metadata = subscription(names, owned)
        options["protocols"] = [(name, metadata) for name in protocols]
        answer = self.join(member_id, **options)
        if answer.response is not None and answer.response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            return self.join(answer.response.member_id, **options)
        return answer

    def joined(self, member_id="", *args, **options):
        """The member id and the generation of a JoinGroup that is granted at once."""
        answer = self.joins(member_id, *args, **options).response
        assert answer is not None
        assert answer.error_code == ErrorCode.NONE, answer
        return answer.member_id, answer.generation_id

    def synced(self, member_id, generation, **options):
        """The assignment that a SyncGroup fetches."""
        answer = self.sync(member_id, generation, **options).response
        assert answer.error_code == ErrorCode.NONE, answer
        return dict(assigned_partitions(answer.assignment))

    def classic(self, *shares, user_data=None, **options):
        """A stable classic group, a member for each share of the partitions; the member ids. Its generation is 1."""
        answers = [self.joins(turn=False, client_id=f"c{index}", version=3, **options) for index, _ in enumerate(shares)]
        self.advance(0)
        member_ids = [answer.response.member_id for answer in answers]
        leader = answers[0].response.leader
        given = {each: assignment(share, user_data) for each, share in zip(member_ids, shares, strict=True)}
        for each in [*(each for each in member_ids if each != leader), leader]:
            self.sync(each, 1, given if each == leader else None)
        assert str(self.group().state) == "Stable"
        self.records()
        return member_ids

    def kind(self):
        group = self.group()
        return "" if group is None else group.group_type

    def holders(self):
        """The partitions of ``t`` by the member that a consumer group's records say to have them."""
        found = {}
        for (topic_id, index), member_id in sorted(self.group().holders.items()):
            if self.topics.name_of(topic_id) == "t":
                found.setdefault(member_id, []).append(index)
        return found

    def commit(self, member_id, generation, offset, partition=0, topic_id=None):
        """A commit for a partition of ``t``."""
        partitions = [COMMIT.OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)]
        topics = [COMMIT.OffsetCommitRequestTopic(name="t", partitions=partitions)]
        request = COMMIT.OffsetCommitRequest(
            group_id="g", member_id=member_id, generation_id_or_member_epoch=generation, topics=topics
        )
        answer = Answer()
        self.write(lambda shard: commit_offsets(shard.offsets, request, [(topic_id, partitions, "t")], 9), answer.reply)
        return answer.response.code if isinstance(answer.response, KafkaError) else ErrorCode.NONE

    def committed(self):
        request = FETCH.OffsetFetchRequestGroup(
            group_id="g", topics=[FETCH.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        )
        answer = self.runtime.read(0, lambda shard, offset: fetch_offsets(shard.offsets, request, offset))
        return answer.topics[0].partitions[0].committed_offset
