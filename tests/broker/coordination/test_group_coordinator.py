"""The group coordinator on a broker's own partitions: created on demand, loaded after a start, unloaded with its topic."""

import asyncio
import sys
from subprocess import run
from uuid import RFC_4122, UUID

import pytest

from odradek.controller.metadata.decisions import NewTopic
from odradek.controller.metadata.topic import CONSUMER_OFFSETS_TOPIC
from odradek.coordinator.runtime.result import CoordinatorRecord, CoordinatorResult
from odradek.coordinator.runtime.states import ShardState
from odradek.protocol.coordinator_records import OffsetCommitKey, OffsetCommitValue
from odradek.protocol.errors import ErrorCode, KafkaError

NOW_MS = 1_700_000_000_000


async def commit(broker, group="group", offset=7, topic="t", topic_id=None):
    value = OffsetCommitValue(offset, commit_timestamp_ms=NOW_MS, topic_id=topic_id)
    record = CoordinatorRecord(OffsetCommitKey(group, topic, 0), value)
    done = asyncio.get_running_loop().create_future()
    broker.groups.runtime.write(group, lambda _: CoordinatorResult([record], "committed")).when_done(done.set_result)
    return await done


def committed(broker, group="group", topic="t"):
    def look(shard, _):
        value = shard.offsets.get(group, topic, 0)
        return None if value is None else value.offset

    return broker.groups.runtime.read(group, look)


async def loaded(broker):
    while ShardState.LOADING in broker.groups.runtime.states().values():  # noqa: ASYNC110  each turn loads a slice
        await asyncio.sleep(0)


async def test_the_first_request_creates_the_topic_and_is_answered(start):
    broker = await start()
    assert not broker.partitions.of_topic(CONSUMER_OFFSETS_TOPIC)
    assert await commit(broker) == "committed"
    assert (len(broker.partitions.of_topic(CONSUMER_OFFSETS_TOPIC)), committed(broker)) == (3, 7)


@pytest.mark.parametrize("codec", range(5))
async def test_compressed_records_are_read_back(start, codec):
    broker = await start(offsets_topic_compression_codec=str(codec))
    await commit(broker)
    runtime = broker.groups.runtime
    partition = runtime.partition_for("group")
    runtime.unload(partition)
    runtime.start_loading(partition, 1)
    await loaded(broker)
    assert committed(broker) == 7


async def test_groups_are_loaded_after_a_start_without_a_request(start):
    await commit(await start())
    broker = await start()
    while not broker.groups.has_runtime:  # noqa: ASYNC110  each turn imports a part
        await asyncio.sleep(0)
    await loaded(broker)
    assert set(broker.groups.runtime.states().values()) == {ShardState.ACTIVE}
    assert committed(broker) == 7


async def test_a_request_during_the_load_is_told_so(start):
    await commit(await start())
    broker = await start()
    with pytest.raises(KafkaError) as caught:
        committed(broker)
    assert caught.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_a_commit_wakes_a_fetch_of_the_offsets_topic(start):
    broker = await start()
    await commit(broker, "a")
    partition = broker.partitions.require(CONSUMER_OFFSETS_TOPIC, broker.groups.runtime.partition_for("a"))
    before = partition.high_watermark
    await commit(broker, "a")
    assert partition.high_watermark == before + 1


async def test_a_stop_answers_who_waits_and_keeps_what_was_decided(start):
    broker = await start()
    answer = asyncio.ensure_future(commit(broker, offset=9))
    await asyncio.sleep(0)
    assert not answer.done()
    broker = await start()
    assert await answer == "committed"
    await loaded(broker)
    assert committed(broker) == 9


async def test_with_the_topic_its_groups_go_and_a_new_one_begins_empty(start):
    broker = await start()
    await commit(broker)
    topic = broker.controller.image.topics[CONSUMER_OFFSETS_TOPIC]
    broker.controller.delete_topics([topic.topic_id])
    assert broker.groups.runtime.states() == {}
    broker.controller.ensure_internal_topic(CONSUMER_OFFSETS_TOPIC)
    assert (committed(broker), await commit(broker, offset=1), committed(broker)) == (None, "committed", 1)


async def test_a_deleted_topics_offsets_go_with_it(start):
    broker = await start()
    broker.controller.create_topics([NewTopic(name="t"), NewTopic(name="other")])
    topics = broker.controller.image.topics
    await commit(broker, topic="t", topic_id=topics["t"].topic_id)
    await commit(broker, topic="other", topic_id=topics["other"].topic_id)
    broker.controller.delete_topics([topics["t"].topic_id])
    assert (committed(broker, topic="t"), committed(broker, topic="other")) == (None, 7)


async def test_an_offline_partition_does_not_coordinate(start):
    broker = await start()
    await commit(broker)
    runtime = broker.groups.runtime
    partition = runtime.partition_for("group")
    broker.partitions.require(CONSUMER_OFFSETS_TOPIC, partition).take_offline("its disk is gone")
    assert [(await commit(broker)).code for _ in range(2)] == [ErrorCode.NOT_COORDINATOR] * 2
    assert runtime.states()[partition] is ShardState.FAILED


def test_a_broker_without_groups_does_not_import_the_coordinator():
    script = (
        "import sys, odradek.broker.start.server; print([name for name in sys.modules if name.startswith('odradek.coordinator')])"
    )
    result = run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


async def test_what_member_ids_end_in_is_a_random_uuid(start):
    groups = (await start()).groups
    told = [groups._shards()._new_id() for _ in range(100)]
    assert [str(UUID(text)) for text in told] == told
    assert {(UUID(text).version, UUID(text).variant) for text in told} == {(4, RFC_4122)}
