"""Fetch: what is answered at once, what waits, and whose error is whose."""

import asyncio

import pytest

from odradek.common.config.table_quorum import RACK_AWARE_SELECTOR
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.message_types.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from odradek.protocol.records import Record, build_batch
from tests.broker.api.in_process import Node, Ticking, new_broker

MAX_BYTES = 1 << 20
BY_NAME, BY_ID = 12, 13


def request(*asked, **fields):
    """``asked`` are (topic, partition, offset); a topic is a name or an id."""
    topics = [
        FetchTopic(
            **{"topic": topic} if isinstance(topic, str) else {"topic_id": topic},
            partitions=[FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=MAX_BYTES)],
        )
        for topic, index, offset in asked
    ]
    return FetchRequest(topics=topics, **{"max_bytes": MAX_BYTES} | fields)


def batch(**fields):
    return build_batch([Record(value=b"v" * 100, timestamp=1)], **fields)


async def append(node, index=0):
    await node.produce(topics=[("t", [(index, batch())])])


async def fetch(node, *asked, version=BY_NAME, **fields):
    """The one partition that is answered."""
    response = await node.ask(ApiKey.FETCH, request(*asked, **fields), version)
    (topic,) = response.responses
    (partition,) = topic.partitions
    return partition


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
async def test_a_topic_is_answered_as_it_was_asked_for(node, version):
    topic_id = await node.create("t")
    await append(node)
    asked = topic_id if version == BY_ID else "t"

    response = await node.ask(ApiKey.FETCH, request((asked, 0, 0)), version)

    (topic,) = response.responses
    assert (topic.topic_id, topic.topic) == ((topic_id, "") if version == BY_ID else (None, "t"))
    assert (topic.partitions[0].error_code, len(topic.partitions[0].records)) == (ErrorCode.NONE, len(batch()))


async def test_partitions_that_follow_one_another_are_of_one_topic(node):
    await node.create("t", 2)
    await node.create("u")

    response = await node.ask(ApiKey.FETCH, request(("t", 0, 0), ("t", 1, 0), ("u", 0, 0), ("t", 0, 0)), BY_NAME)

    told = [(topic.topic, [each.partition_index for each in topic.partitions]) for topic in response.responses]
    assert told[:2] == [("t", [0, 1]), ("u", [0])]


async def test_a_fetch_of_enough_is_answered_at_once(node):
    await node.create("t")
    await append(node)

    answer = node.broker.send(ApiKey.FETCH, request(("t", 0, 0), min_bytes=1, max_wait_ms=1000), BY_NAME)

    assert answer.done


async def test_a_fetch_of_too_little_waits_for_more(node):
    await node.create("t")
    answer = node.broker.send(ApiKey.FETCH, request(("t", 0, 0), min_bytes=len(batch()) + 1, max_wait_ms=1000), BY_NAME)

    assert not answer.done
    await append(node)
    assert not answer.done
    await append(node)
    (partition,) = (await node.broker.wait(answer)).responses[0].partitions
    assert (len(partition.records), partition.high_watermark) == (2 * len(batch()), 2)


async def test_a_fetch_waits_no_longer_than_it_wants_to(node):
    await node.create("t")
    answer = node.broker.send(ApiKey.FETCH, request(("t", 0, 0), min_bytes=1, max_wait_ms=1000), BY_NAME)

    await node.broker.advance(999)
    assert not answer.done
    await node.broker.advance(1)
    assert not answer.response.responses[0].partitions[0].records


async def test_a_fetch_that_does_not_want_to_wait_does_not(node):
    await node.create("t")

    assert node.broker.send(ApiKey.FETCH, request(("t", 0, 0), min_bytes=1, max_wait_ms=0), BY_NAME).done


async def test_a_partition_s_error_is_its_own_and_waits_for_nothing(node):
    await node.create("t")
    answer = node.broker.send(ApiKey.FETCH, request(("t", 0, 0), ("nowhere", 0, 0), min_bytes=1, max_wait_ms=1000), BY_NAME)

    assert answer.done
    assert answer.response.error_code == ErrorCode.NONE
    codes = {topic.topic: topic.partitions[0].error_code for topic in answer.response.responses}
    assert codes == {"t": ErrorCode.NONE, "nowhere": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


async def delete_topic(node, name):
    response = await node.ask(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=1000), 6)
    assert response.responses[0].error_code == ErrorCode.NONE


class Session:
    """A fetch session of a reader by topic id; each fetch returns the error codes by topic id and partition."""

    def __init__(self, node):
        self._node = node
        self._id = 0
        self._epoch = 0

    async def fetch(self, *asked):
        answer = await self._node.ask(ApiKey.FETCH, request(*asked, session_id=self._id, session_epoch=self._epoch), BY_ID)
        assert (answer.error_code, bool(answer.session_id)) == (ErrorCode.NONE, True)
        self._id = answer.session_id
        self._epoch += 1
        topics = answer.responses
        return {(topic.topic_id, each.partition_index): each.error_code for topic in topics for each in topic.partitions}


async def test_a_session_remembers_the_name_of_a_topic_that_is_deleted_and_created_anew(node):
    old = await node.create("t")
    session = Session(node)
    assert await session.fetch((old, 0, 0), (old, 7, 0)) == {
        (old, 0): ErrorCode.NONE,
        (old, 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    await delete_topic(node, "t")
    gone = {(old, 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, (old, 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert await session.fetch() == gone
    assert await session.fetch((old, 0, 0)) == gone
    new = await node.create("t")
    back = gone | {(old, 0): ErrorCode.INCONSISTENT_TOPIC_ID}
    assert await session.fetch() == back
    assert await session.fetch((old, 0, 0)) == back
    assert await session.fetch((new, 0, 0)) == back | {(new, 0): ErrorCode.NONE}
    await delete_topic(node, "t")
    assert await session.fetch() == gone | {(new, 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


async def test_a_fetch_that_begins_with_the_id_of_a_deleted_topic_does_not_know_it(node):
    old = await node.create("t")
    await delete_topic(node, "t")
    await node.create("t")
    session = Session(node)
    assert await session.fetch((old, 0, 0)) == {(old, 0): ErrorCode.UNKNOWN_TOPIC_ID}
    assert await session.fetch() == {(old, 0): ErrorCode.UNKNOWN_TOPIC_ID}
    assert (await fetch(node, (old, 0, 0), version=BY_ID)).error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_a_fetch_that_waits_learns_that_its_topic_is_deleted(node):
    topic_id = await node.create("t")
    answer = node.broker.send(ApiKey.FETCH, request((topic_id, 0, 0), min_bytes=1, max_wait_ms=60_000), BY_ID)
    await delete_topic(node, "t")
    (partition,) = (await node.broker.wait(answer)).responses[0].partitions
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [7, BY_NAME, BY_ID])
async def test_a_session_that_is_not_there_is_the_request_s_error(node, version):
    response = await node.ask(ApiKey.FETCH, request(session_id=7, session_epoch=1), version)

    assert (response.error_code, list(response.responses)) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, [])


@pytest.mark.parametrize(("isolation_level", "batches"), [(0, 2), (1, 1)])
async def test_read_committed_ends_where_an_open_transaction_begins(node, isolation_level, batches):
    await node.create("t")
    await append(node)
    producer_id, epoch = await node.producer()
    in_transaction = batch(producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True)
    await node.produce(transactional_id="tx", topics=[("t", [(0, in_transaction)])])

    partition = await fetch(node, ("t", 0, 0), isolation_level=isolation_level)

    assert (len(partition.records), partition.last_stable_offset, partition.high_watermark) == (batches * len(batch()), 1, 2)


@pytest.mark.parametrize(("max_bytes", "size"), [(MAX_BYTES, 1024), (500, 500), (1, len(batch()))])
async def test_no_response_is_larger_than_broker_and_client_want_but_for_its_first_batch(max_bytes, size):
    async with new_broker(fetch_max_bytes="1024") as broker:
        node = Node(broker)
        await node.create("t")
        for _ in range(10):
            await append(node)

        partition = await fetch(node, ("t", 0, 0), max_bytes=max_bytes)

        assert len(partition.records) == size


async def many(node, count=200):
    """The partitions of a topic, as they are asked for; every tenth of them has a batch."""
    await node.create("t", count)
    for index in range(0, count, 10):
        await append(node, index)
    return [("t", index, 0) for index in range(count)]


def sizes(response):
    return {partition.partition_index: len(partition.records) for topic in response.responses for partition in topic.partitions}


@pytest.mark.parametrize(("max_bytes", "full"), [(MAX_BYTES, 20), (5 * len(batch()), 5), (1, 1)])
async def test_the_first_of_many_partitions_are_given_what_the_limit_allows(node, max_bytes, full):
    asked = await many(node)

    response = await node.ask(ApiKey.FETCH, request(*asked, max_bytes=max_bytes), BY_NAME)

    assert sizes(response) == {index: len(batch()) if index % 10 == 0 and index < 10 * full else 0 for index in range(200)}


async def test_many_partitions_are_read_in_several_turns_of_the_loop(node):
    asked = await many(node)
    turns = []
    node.core.clock = Ticking(node.core.clock)
    soon, node.core.call_soon = node.core.call_soon, lambda callback: (turns.append(1), soon(callback))

    response = await node.ask(ApiKey.FETCH, request(*asked), BY_NAME)

    assert sum(sizes(response).values()) == 20 * len(batch())
    assert len(turns) > 3


async def test_a_fetch_of_many_partitions_waits_for_records(node):
    await node.create("t", 200)
    asked = [("t", index, 0) for index in range(200)]
    waiting = asyncio.ensure_future(node.ask(ApiKey.FETCH, request(*asked, max_wait_ms=5_000, min_bytes=1), BY_NAME))
    await asyncio.sleep(0)

    await append(node, 150)

    assert {index: size for index, size in sizes(await waiting).items() if size} == {150: len(batch())}


@pytest.mark.parametrize("version", [4, 14, 15])
async def test_a_follower_is_known_by_its_id_in_every_version(node, version):
    topic_id = await node.create("t")
    await append(node)
    fields = {"replica_state": ReplicaState(8, 1)} if version >= 15 else {"replica_id": 8}
    asked = "t" if version < BY_ID else topic_id
    # The only replica is the leader's; without an epoch nobody can say whose knowledge is old.
    assert (await fetch(node, (asked, 0, 0), version=version, **fields)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_racks_do_not_matter_to_a_broker_alone(node):
    await node.create("t")
    await append(node)
    node.broker.core.config.override({"replica.selector.class": RACK_AWARE_SELECTOR})
    assert (await fetch(node, ("t", 0, 0), rack_id="a")).records
