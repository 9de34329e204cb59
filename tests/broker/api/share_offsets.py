"""Requests about the offsets of share groups."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.broker.api.consumer_requests import ask

NONE = ErrorCode.NONE
ALTER = messages(ApiKey.ALTER_SHARE_GROUP_OFFSETS)
DELETE = messages(ApiKey.DELETE_SHARE_GROUP_OFFSETS)
DESCRIBE = messages(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS)


async def alter(node, by_topic, group_id="g"):
    topics = [
        ALTER.AlterShareGroupOffsetsRequestTopic(
            topic_name=name,
            partitions=[
                ALTER.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
                for index, offset in by_index.items()
            ],
        )
        for name, by_index in by_topic.items()
    ]
    return await ask(node, ApiKey.ALTER_SHARE_GROUP_OFFSETS, group_id=group_id, topics=topics)


async def delete(node, *names, group_id="g"):
    topics = [DELETE.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
    return await ask(node, ApiKey.DELETE_SHARE_GROUP_OFFSETS, group_id=group_id, topics=topics)


async def describe(node, by_topic=None, group_id="g"):
    """{topic: [(partition, error, start offset, lag)]} of a group."""
    topics = by_topic and [
        DESCRIBE.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=indexes) for name, indexes in by_topic.items()
    ]
    asked = [DESCRIBE.DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=topics)]
    (group,) = (await ask(node, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, groups=asked)).groups
    assert group.error_code == NONE
    return {
        topic.topic_name: [(each.partition_index, each.error_code, each.start_offset, each.lag) for each in topic.partitions]
        for topic in group.topics
    }


def answered(response):
    assert response.error_code == NONE, response
    return {
        topic.topic_name: [(each.partition_index, each.error_code) for each in topic.partitions] for topic in response.responses
    }
