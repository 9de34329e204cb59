"""The group coordinator on a broker's own partitions: created on demand, loaded after a start, unloaded with its topic."""

import asyncio
import sys
from subprocess import run
from uuid import RFC_4122, UUID

import pytest

from odradek.broker.config import load
from odradek.broker.metadata.decisions import NewTopic
from odradek.broker.metadata.topic_names import CONSUMER_OFFSETS_TOPIC
from odradek.broker.server import Broker
from odradek.coordinator.runtime.record import CoordinatorRecord
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.coordinator.runtime.states import ShardState
from odradek.protocol.coordinator_records import OffsetCommitKey, OffsetCommitValue
from odradek.protocol.errors import ErrorCode, KafkaError

NOW_MS = 1_700_000_000_000


def make_broker(tmp_path, **overrides):
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path / "data"), "offsets.topic.num.partitions": "3"}
    return Broker(load(overrides=settings | {name.replace("_", "."): value for name, value in overrides.items()}))


async def serve(tmp_path, scenario, **overrides):
    """Run ``scenario(broker)`` between start and stop."""
    broker = make_broker(tmp_path, **overrides)
    broker.start()
    try:
        return await scenario(broker)
    finally:
        await broker.stop()


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


async def test_the_first_request_creates_the_topic_and_is_answered(tmp_path):
    async def scenario(broker):
        assert not broker.partitions.of_topic(CONSUMER_OFFSETS_TOPIC)
        assert await commit(broker) == "committed"
        return len(broker.partitions.of_topic(CONSUMER_OFFSETS_TOPIC)), committed(broker)

    assert await serve(tmp_path, scenario) == (3, 7)


async def test_what_was_committed_is_there_after_a_restart(tmp_path):
    await serve(tmp_path, commit)

    async def scenario(broker):
        await loaded(broker)
        return committed(broker)

    assert await serve(tmp_path, scenario) == 7


@pytest.mark.parametrize("codec", range(5))
async def test_compressed_records_are_read_back(tmp_path, codec):
    async def scenario(broker):
        await commit(broker)
        runtime = broker.groups.runtime
        partition = runtime.partition_for("group")
        runtime.unload(partition)
        runtime.start_loading(partition, 1)
        await loaded(broker)
        return committed(broker)

    assert await serve(tmp_path, scenario, offsets_topic_compression_codec=str(codec)) == 7


async def test_groups_are_loaded_after_a_start_without_a_request(tmp_path):
    await serve(tmp_path, commit)

    async def scenario(broker):
        while not broker.groups.is_made:  # noqa: ASYNC110  each turn imports a part
            await asyncio.sleep(0)
        await loaded(broker)
        return set(broker.groups.runtime.states().values())

    assert await serve(tmp_path, scenario) == {ShardState.ACTIVE}


async def test_a_request_during_the_load_is_told_so(tmp_path):
    await serve(tmp_path, commit)

    async def scenario(broker):
        with pytest.raises(KafkaError) as caught:
            committed(broker)
        return caught.value.code

    assert await serve(tmp_path, scenario) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_a_commit_wakes_a_fetch_of_the_offsets_topic(tmp_path):
    async def scenario(broker):
        await commit(broker, "a")
        partition = broker.partitions.require(CONSUMER_OFFSETS_TOPIC, broker.groups.runtime.partition_for("a"))
        before = partition.high_watermark
        await commit(broker, "a")
        return partition.high_watermark - before

    assert await serve(tmp_path, scenario) == 1


async def test_a_stop_answers_who_waits_and_keeps_what_was_decided(tmp_path):
    answers = []

    async def scenario(broker):
        record = CoordinatorRecord(OffsetCommitKey("group", "t", 0), OffsetCommitValue(9, commit_timestamp_ms=NOW_MS))
        broker.groups.runtime.write("group", lambda _: CoordinatorResult([record], "committed")).when_done(answers.append)

    await serve(tmp_path, scenario)
    assert answers == ["committed"]

    async def look(broker):
        await loaded(broker)
        return committed(broker)

    assert await serve(tmp_path, look) == 9


async def test_with_the_topic_its_groups_go_and_a_new_one_begins_empty(tmp_path):
    async def scenario(broker):
        await commit(broker)
        topic = broker.controller.image.topics[CONSUMER_OFFSETS_TOPIC]
        broker.controller.delete_topics([topic.topic_id])
        assert broker.groups.runtime.states() == {}
        broker.controller.ensure_internal_topic(CONSUMER_OFFSETS_TOPIC)
        return committed(broker), await commit(broker, offset=1), committed(broker)

    assert await serve(tmp_path, scenario) == (None, "committed", 1)


async def test_a_deleted_topics_offsets_go_with_it(tmp_path):
    async def scenario(broker):
        broker.controller.create_topics([NewTopic(name="t"), NewTopic(name="other")])
        topics = broker.controller.image.topics
        await commit(broker, topic="t", topic_id=topics["t"].topic_id)
        await commit(broker, topic="other", topic_id=topics["other"].topic_id)
        broker.controller.delete_topics([topics["t"].topic_id])
        return committed(broker, topic="t"), committed(broker, topic="other")

    assert await serve(tmp_path, scenario) == (None, 7)


async def test_an_offline_partition_does_not_coordinate(tmp_path):
    async def scenario(broker):
        await commit(broker)
        runtime = broker.groups.runtime
        broker.partitions.require(CONSUMER_OFFSETS_TOPIC, runtime.partition_for("group")).take_offline("its disk is gone")
        first, second = await commit(broker), await commit(broker)
        return first.code, second.code, runtime.states()[runtime.partition_for("group")]

    assert await serve(tmp_path, scenario) == (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR, ShardState.FAILED)


def test_a_broker_without_groups_does_not_import_the_coordinator():
    script = "import sys, odradek.broker.server; print([name for name in sys.modules if name.startswith('odradek.coordinator')])"
    result = run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_what_member_ids_end_in_is_a_random_uuid(tmp_path):
    groups = make_broker(tmp_path).groups
    told = [groups._new_id() for _ in range(100)]
    assert [str(UUID(text)) for text in told] == told
    assert {(UUID(text).version, UUID(text).variant) for text in told} == {(4, RFC_4122)}
