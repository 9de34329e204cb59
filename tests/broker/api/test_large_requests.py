"""What a large cluster legitimately sends: 10,000 partitions in one request are answered like one."""

import gc
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from odradek.broker.replica.delayed_fetch import FetchRead
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Record, build_batch
from tests.broker.api.in_process import Node, new_broker
from tests.raw_client import decode_response, encode_request

TOPICS = [f"a-topic-of-some-length-{number}" for number in range(1_000)]
PARTITIONS = range(10)


# The broker serves all tests of the module, on one loop.
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("large-requests")]


@asynccontextmanager
async def large_cluster():
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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster():
    async with large_cluster() as cluster:
        yield cluster


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


async def commit_all(cluster, group_id, metadata):
    """Commit offset 3 of every partition; the answer, and the number of batches that it took."""
    await ask(cluster, ApiKey.FIND_COORDINATOR, 3, key=group_id, key_type=0)
    await cluster.broker.settle()
    committed = [
        {"partition_index": index, "committed_offset": 3, "committed_leader_epoch": -1, "committed_metadata": metadata}
        for index in PARTITIONS
    ]
    topics = [{"name": name, "partitions": committed} for name in TOPICS]
    counters = cluster.broker.core.groups.runtime.counters
    appended = counters.appends
    fields = {"generation_id_or_member_epoch": -1, "member_id": "", "topics": topics}
    answer = await ask(cluster, ApiKey.OFFSET_COMMIT, 8, group_id=group_id, **fields)
    return answer, counters.appends - appended


async def offsets_of_all(cluster, group_id):
    topics = [{"name": name, "partition_indexes": list(PARTITIONS)} for name in TOPICS]
    answer = await ask(cluster, ApiKey.OFFSET_FETCH, 8, groups=[{"group_id": group_id, "topics": topics}], require_stable=True)
    (group,) = answer.groups
    assert codes(group.topics) == EVERY
    return {partition.committed_offset for topic in group.topics for partition in topic.partitions}


async def test_offsets_of_all_of_them_are_committed_in_one_batch_and_fetched(cluster):
    answer, batches = await commit_all(cluster, "g", "")
    assert codes(answer.topics) == EVERY
    assert batches == 1
    assert await offsets_of_all(cluster, "g") == {3}


async def test_offsets_that_fit_no_batch_are_all_refused(cluster):
    answer, batches = await commit_all(cluster, "too-large", "m" * 100)
    assert codes(answer.topics) == [(*place, ErrorCode.UNKNOWN_SERVER_ERROR) for *place, _ in EVERY]
    assert batches == 0
    assert await offsets_of_all(cluster, "too-large") == {-1}


async def test_all_of_them_are_deleted():
    async with large_cluster() as cluster:
        answer = await ask(cluster, ApiKey.DELETE_TOPICS, 5, topic_names=TOPICS, timeout_ms=1000)
        assert {each.error_code for each in answer.responses} == {ErrorCode.NONE}
        assert list((await ask(cluster, ApiKey.METADATA, 9, topics=None)).topics) == []


def fetch_of(topics, partitions):
    asked = [
        {
            "partition": index,
            "current_leader_epoch": -1,
            "fetch_offset": 0,
            "last_fetched_epoch": -1,
            "log_start_offset": -1,
            "partition_max_bytes": 100,
        }
        for index in partitions
    ]
    topics = [{"topic": name, "partitions": asked} for name in topics]
    fields = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, "session_epoch": -1}
    return encode_request(ApiKey.FETCH, 12, topics=topics, **fields)[4:]


async def test_all_of_them_are_fetched_with_their_records(cluster):
    node = cluster.broker
    batch = build_batch([Record(timestamp=0, value=b"v")])
    node.core.partitions.get(TOPICS[7], 3).append(batch, node.core.clock.now_ms())
    frame = fetch_of(TOPICS, PARTITIONS)
    assert len(frame) > 64 * 1024
    answer = decode_response(ApiKey.FETCH, 12, await node.ask_bytes(frame))[1]
    told = {(topic.topic, each.partition_index): each for topic in answer.responses for each in topic.partitions}
    assert sorted((*key, each.error_code) for key, each in told.items()) == EVERY
    assert [key for key, each in told.items() if each.records] == [(TOPICS[7], 3)]


async def test_a_fetch_of_more_than_it_may_name_is_refused(cluster):
    with pytest.raises(ConnectionAbortedError, match="more than 25000 items"):
        await cluster.broker.ask_bytes(fetch_of(TOPICS[:1], range(25_001)))


async def test_what_a_fetch_has_read_is_not_left_to_the_garbage_collector(cluster):
    node = cluster.broker
    await node.ask_bytes(fetch_of(TOPICS, PARTITIONS))
    gc.collect()
    gc.disable()
    try:
        before = {id(each) for each in gc.get_objects() if isinstance(each, FetchRead)}
        await node.ask_bytes(fetch_of(TOPICS, PARTITIONS))
        left = [each for each in gc.get_objects() if isinstance(each, FetchRead) and id(each) not in before]
    finally:
        gc.enable()
    assert left == []
