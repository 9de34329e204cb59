"""A shard of groups with real offsets, and the requests that are about them."""

from __future__ import annotations

from uuid import UUID

from odradek.coordinator.group.offset_commit import commit_offsets
from odradek.coordinator.group.offset_deletion import delete_offsets, delete_offsets_of_topics
from odradek.coordinator.group.offset_fetch import LATEST, fetch_all_offsets, fetch_offsets
from odradek.coordinator.group.offsets import OffsetConfig
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages import messages
from tests.coordinator.group.bed import Answer, Bed
from tests.coordinator.long_work import finished

COMMIT = messages(ApiKey.OFFSET_COMMIT)
FETCH = messages(ApiKey.OFFSET_FETCH)
DELETE = messages(ApiKey.OFFSET_DELETE)

TOPIC_ID = UUID(int=1)
OTHER_TOPIC_ID = UUID(int=2)
DAY_MS = 24 * 60 * 60 * 1_000


def subscription(*topics):
    """What a consumer says of itself when it joins, in version 0."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return (0).to_bytes(2, "big") + len(topics).to_bytes(4, "big") + names + (-1).to_bytes(4, "big", signed=True)


class OffsetsBed(Bed):
    def __init__(self, offset_config=None, **options):
        self.offset_config = offset_config or OffsetConfig()
        super().__init__(**options)

    def sync(self, *arguments, **options):
        return super().sync(*arguments, **{"protocol_type": self.group().protocol_type, **options})

    @property
    def committed(self):
        return self.shard.offsets

    def ask_to_commit(
        self,
        partitions,
        *,
        topic="t",
        topic_id=TOPIC_ID,
        group_id="g",
        member_id="",
        generation=-1,
        instance_id=None,
        metadata=None,
        retention_time_ms=-1,
        version=10,
        turn=True,
    ):
        """Commit these offsets by partition."""
        request = COMMIT.OffsetCommitRequest(
            group_id=group_id,
            member_id=member_id,
            generation_id_or_member_epoch=generation,
            group_instance_id=instance_id,
            retention_time_ms=retention_time_ms,
            topics=[
                COMMIT.OffsetCommitRequestTopic(
                    topic_id=topic_id,
                    name=topic,
                    partitions=[
                        COMMIT.OffsetCommitRequestPartition(
                            partition_index=index, committed_offset=offset, committed_leader_epoch=5, committed_metadata=metadata
                        )
                        for index, offset in partitions.items()
                    ],
                )
            ],
        )
        answer = Answer()
        self.write(lambda shard: commit_offsets(shard.offsets, request, request.topics, version), answer.reply, turn=turn)
        return answer

    def commit(self, partitions, **options):
        """The error of the request, or those of its partitions."""
        outcome = self.ask_to_commit(partitions, **options).response
        if isinstance(outcome, KafkaError):
            return outcome.code
        return [ErrorCode(partition.error_code) for partition in outcome.topics[0].partitions]

    def fetch(self, *indexes, topic="t", topic_id=None, group_id="g", at_offset=None):
        """The committed offsets of these partitions, as the log has them or at an offset of it."""
        asked = [FETCH.OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=indexes)]
        request = FETCH.OffsetFetchRequestGroup(group_id=group_id, topics=asked)
        answer = self.runtime.read(
            0, lambda shard, committed: fetch_offsets(shard.offsets, request, committed if at_offset is None else at_offset)
        )
        assert [(each.name, each.topic_id) for each in answer.topics] == [(topic, topic_id)]
        assert [partition.partition_index for partition in answer.topics[0].partitions] == list(indexes)
        assert {partition.error_code for partition in answer.topics[0].partitions} == {ErrorCode.NONE}
        return [partition.committed_offset for partition in answer.topics[0].partitions]

    def fetch_all(self, group_id="g"):
        """All committed offsets of a group, by topic and partition."""
        answer = finished(self.fetching_all(FETCH.OffsetFetchRequestGroup(group_id=group_id, topics=None)))
        return {
            topic.name: {partition.partition_index: partition.committed_offset for partition in topic.partitions}
            for topic in answer.topics
        }

    def fetching_all(self, request):
        """The generator that tells all committed offsets of the group in ``request``."""
        return self.runtime.read(0, lambda shard, committed: fetch_all_offsets(shard.offsets, request, committed))

    def fetch_latest(self, *indexes, **options):
        """The same as it is now, committed or not."""
        return self.fetch(*indexes, at_offset=LATEST, **options)

    def delete(self, *indexes, topic="t", group_id="g"):
        """The error of the request, or those of its partitions."""
        request = DELETE.OffsetDeleteRequest(
            group_id=group_id,
            topics=[
                DELETE.OffsetDeleteRequestTopic(
                    name=topic, partitions=[DELETE.OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
                )
            ],
        )
        answer = Answer()
        self.write(lambda shard: delete_offsets(shard.offsets, request), answer.reply)
        if isinstance(answer.response, KafkaError):
            return answer.response.code
        return [ErrorCode(partition.error_code) for partition in answer.response.topics[0].partitions]

    def delete_topic(self, topic="t", topic_id=TOPIC_ID):
        self.write(lambda shard: delete_offsets_of_topics(shard.offsets, {topic: topic_id}), Answer().reply)

    def delete_group(self, group_id="g"):
        self.write(lambda shard: shard.delete_group(group_id), Answer().reply)

    def consumers(self, *client_ids, topics=("t",)):
        """A stable group of consumers subscribed to these topics."""
        return self.stable(*client_ids, protocols=(("range", subscription(*topics)),))
