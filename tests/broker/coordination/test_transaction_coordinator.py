"""The transaction coordinator on a broker's own partitions: on demand, after a restart, and in the middle of an end."""

import asyncio

import pytest

from odradek.broker.config import load
from odradek.broker.metadata.decisions import NewTopic
from odradek.broker.metadata.topic_names import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.broker.server import Broker
from odradek.coordinator.runtime.marker import EndTxnMarker
from odradek.coordinator.runtime.states import ShardState
from odradek.coordinator.transaction.config import ProducerIdentity
from odradek.coordinator.transaction.states import TransactionState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Record, build_batch

ID = "transfers"
NOBODY = ProducerIdentity(-1, -1)
PARTITION = ("t", 0)


async def serve(tmp_path, scenario, **more):
    """Run ``scenario(broker)`` between start and stop."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path / "data"),
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.num.partitions": "3",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    broker = Broker(load(overrides=settings))
    broker.start()
    try:
        return await scenario(broker)
    finally:
        await broker.stop()


async def ask(broker, operation):
    done = asyncio.get_running_loop().create_future()
    broker.transactions.runtime.write(ID, operation).when_done(done.set_result)
    return await done


async def begin(broker, *partitions):
    producer = await ask(broker, lambda shard: shard.init_producer_id(ID, 60_000, NOBODY))
    await ask(broker, lambda shard: shard.add_partitions(ID, producer, frozenset(partitions), 0))
    return producer


async def loaded(broker):
    while ShardState.LOADING in broker.transactions.runtime.states().values():  # noqa: ASYNC110  each turn loads a slice
        await asyncio.sleep(0)


def state(broker):
    return broker.transactions.runtime.read(ID, lambda shard, _: TransactionState(shard.transactions.by_id[ID].status))


def create(broker, name="t"):
    broker.controller.create_topics([NewTopic(name=name, partition_count=1)])
    return broker.partitions.require(name, 0)


def produce(broker, partition, producer):
    batch = build_batch(
        [Record(value=b"v", timestamp=1)],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=0,
        transactional=True,
    )
    partition.append(batch, broker.clock.now_ms(), transaction_verified=True)


async def test_the_first_request_creates_the_topic(tmp_path):
    async def scenario(broker):
        assert not broker.transactions.is_made
        await begin(broker)
        return len(broker.partitions.of_topic(TRANSACTION_STATE_TOPIC))

    assert await serve(tmp_path, scenario) == 3


async def test_an_open_transaction_is_there_after_a_restart(tmp_path):
    async def first(broker):
        produce(broker, create(broker), await begin(broker, PARTITION))

    async def second(broker):
        await loaded(broker)
        return state(broker), broker.partitions.require(*PARTITION).last_stable_offset

    await serve(tmp_path, first)
    assert await serve(tmp_path, second) == (TransactionState.ONGOING, 0)


async def test_when_the_end_is_answered_its_markers_are_in_the_partitions(tmp_path):
    async def scenario(broker):
        partition = create(broker)
        producer = await begin(broker, PARTITION)
        produce(broker, partition, producer)
        await ask(broker, lambda shard: shard.end_txn(ID, producer, commit=True, client_version=0))
        return state(broker), partition.last_stable_offset, partition.high_watermark

    assert await serve(tmp_path, scenario) == (TransactionState.COMPLETE_COMMIT, 2, 2)


async def test_markers_that_could_not_be_written_are_written_after_a_restart(tmp_path):
    async def first(broker):
        partition = create(broker)
        producer = await begin(broker, PARTITION)
        produce(broker, partition, producer)
        log, partition.log = partition.log, None
        await ask(broker, lambda shard: shard.end_txn(ID, producer, commit=True, client_version=0))
        await asyncio.sleep(0)
        partition.log = log
        return state(broker)

    async def second(broker):
        await loaded(broker)
        return state(broker), broker.partitions.require(*PARTITION).last_stable_offset

    assert await serve(tmp_path, first) is TransactionState.PREPARE_COMMIT
    assert await serve(tmp_path, second) == (TransactionState.COMPLETE_COMMIT, 2)


async def test_a_topic_that_is_deleted_in_the_middle_needs_no_marker(tmp_path):
    async def scenario(broker):
        create(broker)
        producer = await begin(broker, PARTITION)
        broker.controller.delete_topics([broker.controller.image.topics["t"].topic_id])
        await ask(broker, lambda shard: shard.end_txn(ID, producer, commit=False, client_version=0))
        return state(broker)

    assert await serve(tmp_path, scenario) is TransactionState.COMPLETE_ABORT


async def test_the_offsets_topic_may_be_deleted_in_the_middle(tmp_path):
    async def scenario(broker):
        broker.controller.ensure_internal_topic(CONSUMER_OFFSETS_TOPIC)
        producer = await begin(broker, (CONSUMER_OFFSETS_TOPIC, 1))
        broker.controller.delete_topics([broker.controller.image.topics[CONSUMER_OFFSETS_TOPIC].topic_id])
        await ask(broker, lambda shard: shard.end_txn(ID, producer, commit=True, client_version=0))
        return state(broker)

    assert await serve(tmp_path, scenario) is TransactionState.COMPLETE_COMMIT


async def test_a_marker_for_a_group_goes_through_its_coordinator(tmp_path):
    async def scenario(broker):
        broker.controller.ensure_internal_topic(CONSUMER_OFFSETS_TOPIC)
        broker.transactions.write_marker(CONSUMER_OFFSETS_TOPIC, 1, EndTxnMarker(5, 0, 0, True))
        partition = broker.partitions.require(CONSUMER_OFFSETS_TOPIC, 1)
        return partition.high_watermark, broker.groups.runtime.counters.appends

    assert await serve(tmp_path, scenario) == (1, 1)


@pytest.mark.parametrize("flush_messages", ["1", "9223372036854775807"])
async def test_partitions_are_added_within_the_call(tmp_path, flush_messages):
    async def scenario(broker):
        producer = await ask(broker, lambda shard: shard.init_producer_id(ID, 60_000, NOBODY))
        return [broker.transactions.verify(ID, *producer, "t", index, adds=True) for index in range(2)]

    assert await serve(tmp_path, scenario, log_flush_interval_messages=flush_messages) == [ErrorCode.NONE] * 2
