"""Open transactions are shown with their age, and with what they hold back."""

from odradek.page.facts.transactions import transactions
from odradek.protocol.records import Record, build_batch
from tests.page.conftest import producing


async def test_an_open_transaction_holds_back_what_was_written_after_it(broker, source):
    await broker.create_topics({"orders": 2})
    async with producing(broker, transactional_id="shop") as producer:
        async with producer.transaction():
            await producer.send_and_wait("orders", b"1", partition=0)
        async with producer.transaction():
            await producer.send_and_wait("orders", b"2", partition=0)
            await broker.produce("orders", [b"3", b"4"], partition=0)
            await broker.clock.advance(seconds=5)
            found = await transactions(source)
        [row] = found.open
        [partition] = row.partitions
        assert (row.transactional_id, row.state, row.coordinator) == ("shop", "Ongoing", 1)
        assert 5_000 <= row.age_ms < 60_000
        assert row.producer_epoch >= 0
        assert (partition.topic, partition.partition) == ("orders", 0)
        assert (partition.start_offset, partition.last_stable_offset) == (2, 2)
        assert (partition.holds_back, partition.offsets_behind) == (True, 3)
    after = await transactions(source)
    assert after.open == ()
    [(coordinator, ended)] = after.others
    assert (coordinator, ended.transactional_id, ended.transaction_state) == (1, "shop", "CompleteCommit")


async def test_a_younger_transaction_holds_nothing_back_while_an_older_one_does(broker, source):
    await broker.create_topics({"orders": 1})
    async with producing(broker, transactional_id="old") as old, producing(broker, transactional_id="young") as young:
        await old.begin_transaction()
        await old.send_and_wait("orders", b"1")
        await broker.clock.advance(seconds=1)
        await young.begin_transaction()
        await young.send_and_wait("orders", b"2")
        found = await transactions(source)
        await young.abort_transaction()
        await old.abort_transaction()
    assert [row.transactional_id for row in found.open] == ["old", "young"]
    assert [row.partitions[0].holds_back for row in found.open] == [True, False]


async def test_a_transaction_that_no_coordinator_knows_is_hanging(broker, source):
    await broker.create_topics({"orders": 1})
    log = broker.core.partitions.get("orders", 0).log
    batch = build_batch(
        [Record(value=b"1", timestamp=broker.clock.now_ms())],
        producer_id=77,
        producer_epoch=3,
        base_sequence=0,
        transactional=True,
    )
    log.append_as_follower(batch, leader_epoch=0, now_ms=broker.clock.now_ms())
    broker.core.partitions.get("orders", 0).high_watermark = log.log_end_offset
    [row] = (await transactions(source)).open
    assert (row.transactional_id, row.state, row.producer_id, row.producer_epoch) == (None, "Hanging", 77, 3)
    assert row.partitions[0].holds_back
