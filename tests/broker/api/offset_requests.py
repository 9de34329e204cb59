"""OffsetCommit and OffsetFetch, as the tests of the offset handlers ask."""

from uuid import UUID

from odradek.protocol.api_keys import ApiKey

UNKNOWN_ID = UUID(int=99)


def commit(client, version, topics, group_id, **fields):
    """``topics``: (name, id, {partition: offset}). The errors as {(topic, partition): error}, by name or by id."""
    response = client.call(
        ApiKey.OFFSET_COMMIT,
        version,
        group_id=group_id,
        topics=[
            {
                **({"topic_id": topic_id} if version >= 10 else {"name": name}),
                "partitions": [
                    {"partition_index": index, "committed_offset": offset, "committed_metadata": "m"}
                    for index, offset in offsets.items()
                ],
            }
            for name, topic_id, offsets in topics
        ],
        **fields,
    )
    return {
        (topic.topic_id if version >= 10 else topic.name, partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }


def committed(client, group_id, *topics):
    response = client.call(
        ApiKey.OFFSET_FETCH,
        9,
        groups=[{"group_id": group_id, "topics": [{"name": name, "partition_indexes": indexes} for name, indexes in topics]}],
    )
    return [partition.committed_offset for topic in response.groups[0].topics for partition in topic.partitions]
