"""What a large cluster legitimately sends: 10,000 partitions in one request are answered like one."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.handlers.in_process import Node, new_broker
from tests.raw_client import decode_response, encode_request

TOPICS = [f"a-topic-of-some-length-{number}" for number in range(1_000)]
PARTITIONS = range(10)


@pytest.fixture
async def cluster():
    async with new_broker() as broker:
        created = await ask(
            Node(broker),
            ApiKey.CREATE_TOPICS,
            7,
            topics=[
                {"name": name, "num_partitions": len(PARTITIONS), "replication_factor": 1, "assignments": [], "configs": []}
                for name in TOPICS
            ],
        )
        assert {(topic.error_code, topic.num_partitions) for topic in created.topics} == {(ErrorCode.NONE, len(PARTITIONS))}
        yield Node(broker)


async def ask(node, api_key, version, **fields):
    frame = await node.broker.ask_bytes(encode_request(api_key, version, **fields)[4:])
    return decode_response(api_key, version, frame)[1]


def codes(topics, partitions="partitions"):
    """(topic, partition, error) of each."""
    return sorted(
        (topic.name, partition.partition_index, partition.error_code)
        for topic in topics
        for partition in getattr(topic, partitions)
    )


EVERY = sorted((name, index, ErrorCode.NONE) for name in TOPICS for index in PARTITIONS)


async def test_metadata_tells_all_of_them(cluster):
    answer = await ask(cluster, ApiKey.METADATA, 9, topics=[{"name": name} for name in TOPICS])
    assert codes(answer.topics) == EVERY


async def test_list_offsets_answers_all_of_them(cluster):
    partitions = [{"partition_index": index, "timestamp": -1, "current_leader_epoch": -1} for index in PARTITIONS]
    topics = [{"name": name, "partitions": partitions} for name in TOPICS]
    answer = await ask(cluster, ApiKey.LIST_OFFSETS, 7, replica_id=-1, topics=topics)
    assert codes(answer.topics) == EVERY
    assert len(answer.topics) == len(TOPICS)


async def test_offsets_of_all_of_them_are_committed_and_fetched(cluster):
    await ask(cluster, ApiKey.FIND_COORDINATOR, 3, key="g", key_type=0)
    await cluster.broker.settle()
    committed = [
        {"partition_index": index, "committed_offset": 3, "committed_leader_epoch": -1, "committed_metadata": ""}
        for index in PARTITIONS
    ]
    topics = [{"name": name, "partitions": committed} for name in TOPICS]
    answer = await ask(
        cluster, ApiKey.OFFSET_COMMIT, 8, group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=topics
    )
    assert codes(answer.topics) == EVERY

    topics = [{"name": name, "partition_indexes": list(PARTITIONS)} for name in TOPICS]
    answer = await ask(cluster, ApiKey.OFFSET_FETCH, 8, groups=[{"group_id": "g", "topics": topics}], require_stable=True)
    (group,) = answer.groups
    assert codes(group.topics) == EVERY
    assert {partition.committed_offset for topic in group.topics for partition in topic.partitions} == {3}


async def test_all_of_them_are_deleted(cluster):
    answer = await ask(cluster, ApiKey.DELETE_TOPICS, 5, topic_names=TOPICS, timeout_ms=1000)
    assert {each.error_code for each in answer.responses} == {ErrorCode.NONE}
    assert list((await ask(cluster, ApiKey.METADATA, 9, topics=None)).topics) == []
