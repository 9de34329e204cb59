"""The transaction coordinator on a broker's own partitions: on demand, after a restart, and in the middle of an end."""

import asyncio

import pytest

from odradek.controller.metadata.decisions import NewTopic
from odradek.controller.metadata.topic import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.coordinator.runtime.result import EndTxnMarker
from odradek.coordinator.runtime.states import ShardState
from odradek.coordinator.transaction.states import TransactionState
from odradek.coordinator.transaction.transactions import ProducerIdentity
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Record, build_batch

ID = "transfers"
NOBODY = ProducerIdentity(-1, -1)
PARTITION = ("t", 0)


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


async def begin_writing(broker):
    """A transaction that has written; the partition."""
    partition = create(broker)
    producer_id, epoch = await begin(broker, PARTITION)
    batch = build_batch(
        [Record(value=b"v", timestamp=1)], producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True
    )
    partition.append(batch, broker.clock.now_ms(), transaction_verified=True)
    return partition


async def end(broker, *, commit=True):
    value = broker.transactions.runtime.read(ID, lambda shard, _: shard.transactions.by_id[ID])
    producer = ProducerIdentity(value.producer_id, value.producer_epoch)
    await ask(broker, lambda shard: shard.end_txn(ID, producer, commit=commit, client_version=0))
    return state(broker)


async def test_the_first_request_creates_the_topic(start):
    broker = await start()
    assert not broker.transactions.has_runtime
    await begin(broker)
    assert len(broker.partitions.of_topic(TRANSACTION_STATE_TOPIC)) == 3


async def test_an_open_transaction_is_there_after_a_restart(start):
    await begin_writing(await start())
    broker = await start()
    await loaded(broker)
    assert (state(broker), broker.partitions.require(*PARTITION).last_stable_offset) == (TransactionState.ONGOING, 0)


async def test_when_the_end_is_answered_its_markers_are_in_the_partitions(start):
    broker = await start()
    partition = await begin_writing(broker)
    assert await end(broker) is TransactionState.COMPLETE_COMMIT
    assert (partition.last_stable_offset, partition.high_watermark) == (2, 2)


async def test_markers_that_could_not_be_written_are_written_after_a_restart(start):
    broker = await start()
    partition = await begin_writing(broker)
    log, partition.log = partition.log, None
    assert await end(broker) is TransactionState.PREPARE_COMMIT
    await asyncio.sleep(0)
    partition.log = log
    assert state(broker) is TransactionState.PREPARE_COMMIT
    broker = await start()
    await loaded(broker)
    assert (state(broker), broker.partitions.require(*PARTITION).last_stable_offset) == (TransactionState.COMPLETE_COMMIT, 2)


async def test_a_topic_that_is_deleted_in_the_middle_needs_no_marker(start):
    broker = await start()
    create(broker)
    await begin(broker, PARTITION)
    broker.controller.delete_topics([broker.controller.image.topics["t"].topic_id])
    assert await end(broker, commit=False) is TransactionState.COMPLETE_ABORT


async def test_the_offsets_topic_may_be_deleted_in_the_middle(start):
    broker = await start()
    broker.controller.ensure_internal_topic(CONSUMER_OFFSETS_TOPIC)
    await begin(broker, (CONSUMER_OFFSETS_TOPIC, 1))
    broker.controller.delete_topics([broker.controller.image.topics[CONSUMER_OFFSETS_TOPIC].topic_id])
    assert await end(broker) is TransactionState.COMPLETE_COMMIT


async def test_a_marker_for_a_group_goes_through_its_coordinator(start):
    broker = await start()
    broker.controller.ensure_internal_topic(CONSUMER_OFFSETS_TOPIC)
    broker.transactions.write_marker(CONSUMER_OFFSETS_TOPIC, 1, EndTxnMarker(5, 0, 0, True))
    partition = broker.partitions.require(CONSUMER_OFFSETS_TOPIC, 1)
    assert (partition.high_watermark, broker.groups.runtime.counters.appends) == (1, 1)


@pytest.mark.parametrize("flush_messages", ["1", "9223372036854775807"])
async def test_partitions_are_added_within_the_call(start, flush_messages):
    broker = await start(log_flush_interval_messages=flush_messages)
    producer = await ask(broker, lambda shard: shard.init_producer_id(ID, 60_000, NOBODY))
    assert [broker.transactions.verify(ID, *producer, "t", index, adds=True) for index in range(2)] == [ErrorCode.NONE] * 2
