"""What the metrics say of the transaction coordinator after transactions have come and gone."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records import Record, build_batch
from tests.broker.metrics.bed import loaded, plain

MARKERS = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"
REPLICA_MANAGER = "kafka_server_replicamanager_"
COORDINATOR = "kafka_server_transaction_coordinator_metrics_"
TIMEOUT_MS = 60_000
MAX_TIMEOUT_MS = 900_000
FIVE_MINUTES_MS = 300_000


class Transactions:
    """A raw client of the transaction coordinator on a bed."""

    def __init__(self, bed):
        self.bed = bed

    async def init(self, transactional_id):
        answer = await self.bed.send(
            ApiKey.INIT_PRODUCER_ID, 4, transactional_id=transactional_id, transaction_timeout_ms=TIMEOUT_MS
        )
        return transactional_id, answer.producer_id, answer.producer_epoch

    async def add(self, producer, *partitions):
        transactional_id, producer_id, epoch = producer
        answer = await self.bed.send(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            3,
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[{"name": "a", "partitions": partitions}],
        )
        (topic,) = answer.results_by_topic_v3_and_below
        assert {each.partition_error_code for each in topic.results_by_partition} == {0}

    async def begin(self, transactional_id, *partitions):
        producer = await self.init(transactional_id)
        await self.add(producer, *(partitions or (0,)))
        return producer

    async def end(self, producer, *, commit=True):
        transactional_id, producer_id, epoch = producer
        answer = await self.bed.send(
            ApiKey.END_TXN, 3, transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch, committed=commit
        )
        assert answer.error_code == 0
        await self.bed.send(ApiKey.LIST_TRANSACTIONS, 0)

    def write(self, producer):
        _, producer_id, epoch = producer
        now_ms = self.bed.clock.now_ms()
        batch = build_batch(
            [Record(value=b"x", timestamp=now_ms)],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=0,
            transactional=True,
        )
        self.bed.broker.partitions.require("a", 0).append(batch, now_ms, transaction_verified=True)


@pytest.fixture
def settings():
    return {"num_partitions": 3}


@pytest.fixture
async def transactions(bed):
    bed.broker.controller.auto_create(["a"])
    await loaded(bed.broker.transactions.runtime)
    return Transactions(bed)


async def test_a_broker_that_never_had_a_transaction_says_so_in_zeros(bed):
    read = bed.read()
    assert set(read["odradek_transactional_ids"].values()) == {0}
    assert read["odradek_transactions_open"] == {(): 0}
    assert read["odradek_transaction_oldest_open_age_ms"] == {}
    assert read["odradek_transactions_ended_total"] == {("commit",): 0, ("abort",): 0}
    assert read["odradek_transaction_coordinator_partitions"] == {("loading",): 0, ("active",): 0, ("failed",): 0}


async def test_transactional_ids_are_counted_by_state(transactions):
    await transactions.init("new")
    await transactions.begin("open")
    await transactions.end(await transactions.begin("committed"))
    await transactions.end(await transactions.begin("aborted"), commit=False)
    read = transactions.bed.read()
    assert read["odradek_transactional_ids"] == {
        ("Empty",): 1,
        ("Ongoing",): 1,
        ("PrepareCommit",): 0,
        ("PrepareAbort",): 0,
        ("CompleteCommit",): 1,
        ("CompleteAbort",): 1,
    }
    assert read["odradek_transactions_open"] == {(): 1}


async def test_the_age_of_the_oldest_open_transaction_is_told(transactions):
    await transactions.begin("older")
    transactions.bed.clock.advance(300)
    await transactions.begin("younger")
    transactions.bed.clock.advance(20)
    assert transactions.bed.read()["odradek_transaction_oldest_open_age_ms"] == {(): 320}


@pytest.mark.parametrize(("commit", "result"), [(True, "commit"), (False, "abort")])
async def test_an_end_is_counted_with_how_long_the_transaction_lasted(transactions, commit, result):
    producer = await transactions.begin("t")
    transactions.bed.clock.advance(70)
    await transactions.end(producer, commit=commit)
    read = transactions.bed.read()
    assert {each: count for each, count in read["odradek_transactions_ended_total"].items() if count} == {(result,): 1}
    assert plain(read["odradek_transaction_duration_ms"][(result,)]) == (1, 70)


async def test_a_transaction_that_times_out_is_counted_as_such_and_as_an_abort(transactions):
    await transactions.begin("t")
    for _ in range(8):
        transactions.bed.clock.advance(10_000)
        await transactions.bed.send(ApiKey.LIST_TRANSACTIONS, 0)
    read = transactions.bed.read()
    assert read["odradek_transactions_timed_out_total"] == {(): 1}
    assert read["odradek_transactions_ended_total"] == {("commit",): 0, ("abort",): 1}


@pytest.mark.parametrize("settings", [{"transactional_id_expiration_ms": 1_000}])
async def test_transactional_ids_that_expire_are_counted(transactions):
    await transactions.init("t")
    transactions.bed.clock.advance(4_000_000)
    await transactions.bed.send(ApiKey.LIST_TRANSACTIONS, 0)
    read = transactions.bed.read()
    assert read["odradek_transactional_ids_expired_total"] == {(): 1}
    assert read["odradek_transactional_ids"][("Empty",)] == 0


async def test_markers_that_cannot_be_written_are_counted(transactions):
    def refuse(topic, partition, marker):
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    transactions.bed.broker.transactions.write_marker = refuse
    await transactions.end(await transactions.begin("t", 0, 2))
    read = transactions.bed.read()
    assert read[f"{MARKERS}unknowndestinationqueuesize"] == {(): 2}
    assert read[f"{MARKERS}logappendretryqueuesize"] == {(): 0}
    assert read["odradek_transactional_ids"][("PrepareCommit",)] == 1


async def test_producer_ids_are_counted_once_a_partition(transactions):
    transactions.write(await transactions.begin("t1"))
    await transactions.end(await transactions.begin("t2", 1, 2))
    assert transactions.bed.read()[f"{REPLICA_MANAGER}produceridcount"] == {(): 3}


@pytest.mark.parametrize(("more_ms", "late"), [(0, 0), (1, 1)])
async def test_a_partition_is_late_five_minutes_after_the_longest_timeout(transactions, more_ms, late):
    transactions.write(("hanging", 4_000, 0))
    transactions.bed.clock.advance(MAX_TIMEOUT_MS + FIVE_MINUTES_MS + more_ms)
    assert transactions.bed.read()[f"{REPLICA_MANAGER}partitionswithlatetransactionscount"] == {(): late}


async def test_loads_and_appends_are_counted(transactions):
    await transactions.end(await transactions.begin("t"))
    read = transactions.bed.read()
    assert read["odradek_transaction_coordinator_partitions"] == {("loading",): 0, ("active",): 3, ("failed",): 0}
    assert plain(read[f"{COORDINATOR}partition_load_time"][()]) == (3, 0)
    assert read["odradek_transaction_coordinator_appended_records_total"] == {(): 4}
