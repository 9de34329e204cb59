"""Buttons do what they say, and say why where they cannot."""

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import ProducerFenced

from odradek.page import actions, group_actions
from odradek.page.actions import ActionFailed
from odradek.page.facts.group import group
from odradek.page.facts.records import at_start, raw_record, read_forward
from odradek.page.facts.source import Missing
from odradek.page.facts.topic import topic
from odradek.page.facts.transactions import transactions
from odradek.page.group_actions import NewOffset, Target
from odradek.protocol.records import Record, build_batch
from tests.page.conftest import consuming, producing, until
from tests.page.test_group import commit


async def test_a_topic_is_made_grown_configured_and_deleted(source):
    await actions.create_topic(source, "orders", 2)
    await actions.add_partitions(source, "orders", 3)
    for name, value in (("retention.ms", "1000"), ("retention.ms", None), ("max.message.bytes", "2000")):
        await actions.set_config(source, "orders", name, value)
    found = await topic(source, "orders")
    assert len(found.partitions) == 3
    assert {row.name: row.value for row in found.configs if row.source == "topic"} == {"max.message.bytes": "2000"}
    with pytest.raises(ActionFailed, match=r"^orders: .*TOPIC_ALREADY_EXISTS"):
        await actions.create_topic(source, "orders")
    with pytest.raises(ActionFailed, match="INVALID_PARTITIONS"):
        await actions.add_partitions(source, "orders", 2)
    with pytest.raises(ActionFailed, match="INVALID_CONFIG"):
        await actions.set_config(source, "orders", "no.such.config", "1")
    await actions.delete_topic(source, "orders")
    with pytest.raises(Missing):
        await topic(source, "orders")
    with pytest.raises(ActionFailed, match="UNKNOWN_TOPIC_OR_PARTITION"):
        await actions.delete_topic(source, "orders")


async def test_a_record_is_written_as_it_was_given_where_a_client_would_write_it(broker, source):
    await broker.create_topics({"orders": 5})
    async with producing(broker) as producer:
        sent = await producer.send_and_wait("orders", b"1", key=b"key")
    written = await actions.produce(source, "orders", b"key", b"\xff\x00", [("h", None), ("h", b"2")])
    assert written == (sent.partition, 1)
    found = await raw_record(source, "orders", *written)
    assert (found.key, found.value, found.headers) == (b"key", b"\xff\x00", (("h", None), ("h", b"2")))
    assert (await actions.produce(source, "orders", None, None, partition=4))[0] == 4
    with pytest.raises(ActionFailed, match="orders-9"):
        await actions.produce(source, "orders", None, b"1", partition=9)
    with pytest.raises(ActionFailed, match="no-such"):
        await actions.produce(source, "no-such", None, b"1")


async def test_records_are_deleted_up_to_an_offset(broker, source):
    await broker.create_topics({"orders": 2})
    await broker.produce("orders", [b"1", b"2", b"3"], partition=0)
    await broker.produce("orders", [b"4", b"5"], partition=1)
    assert await actions.delete_records(source, "orders", 0, 2) == 2
    assert await actions.delete_records(source, "orders", 1, -1) == 2
    [left] = (await read_forward(source, "orders", await at_start(source, "orders"))).records
    assert left.value.text == "3"
    with pytest.raises(ActionFailed, match="OFFSET_OUT_OF_RANGE"):
        await actions.delete_records(source, "orders", 0, 99)


@pytest.mark.parametrize(
    ("target", "after"),
    [
        (Target("offset", 4), 4),
        (Target("offset", 99), 10),
        (Target("shift", -2), 3),
        (Target("shift", 3), 8),
        (Target("time", 1_007), 7),
        (Target("time", 9_999_999), 10),
        (Target("start"), 0),
        (Target("end"), 10),
    ],
)
async def test_offsets_go_where_they_are_sent(broker, source, target, after):
    await broker.create_topics({"orders": 1})
    async with producing(broker) as producer:
        for number in range(10):
            await producer.send_and_wait("orders", b"1", timestamp_ms=1_000 + number)
    await commit(broker, "billing", orders=5)
    [changed] = await group_actions.set_offsets(source, "billing", [("orders", 0)], target)
    assert changed == NewOffset("orders", 0, 5, after)
    async with consuming(broker, group_id="billing") as consumer:
        assert await consumer.committed(TopicPartition("orders", 0)) == after


async def test_offsets_of_a_group_with_members_stay(broker, source):
    await broker.create_topics({"orders": 1})
    async with consuming(broker, "orders", group_id="billing"):
        with pytest.raises(ActionFailed, match=r"^billing: the group has members: stop them first \(NON_EMPTY_GROUP\)$"):
            await group_actions.set_offsets(source, "billing", [("orders", 0)], Target("end"))
        with pytest.raises(ActionFailed, match="NON_EMPTY_GROUP"):
            await group_actions.delete_group(source, "billing")
        with pytest.raises(ActionFailed, match="its members subscribe to the topic"):
            await group_actions.delete_offsets(source, "billing", [("orders", 0)])


async def test_offsets_and_groups_are_deleted(broker, source):
    await broker.create_topics({"orders": 1, "bills": 1})
    await commit(broker, "billing", orders=0, bills=0)
    await group_actions.delete_offsets(source, "billing", [("orders", 0)])
    assert [row.topic for row in (await group(source, "billing")).partitions] == ["bills"]
    await group_actions.delete_group(source, "billing")
    with pytest.raises(Missing):
        await group(source, "billing")


async def test_a_member_that_is_removed_joins_again(broker, source):
    await broker.create_topics({"orders": 1})
    async with consuming(broker, "orders", group_id="billing", session_timeout_ms=60_000, heartbeat_interval_ms=100):
        [member] = (await group(source, "billing")).about.members
        await group_actions.remove_member(source, "billing", member.member_id)

        async def is_another():
            members = (await group(source, "billing")).about.members
            return members and members[0].member_id != member.member_id

        await until(is_another)
        with pytest.raises(ActionFailed, match="there is no member"):
            await group_actions.remove_member(source, "billing", member.member_id)


async def test_an_open_transaction_is_aborted_and_its_producer_fenced(broker, source):
    async with producing(broker, transactional_id="shop") as producer:
        await producer.begin_transaction()
        await producer.send_and_wait("orders", b"1")
        [row] = (await transactions(source)).open
        assert await group_actions.abort_transaction(source, "shop") > row.producer_epoch

        async def is_over():
            return not (await transactions(source)).open

        await until(is_over)
        with pytest.raises(ProducerFenced):
            await producer.commit_transaction()
    assert await broker.records("orders", isolation_level="read_committed") == []
    with pytest.raises(ActionFailed, match="there is no such transactional id"):
        await group_actions.abort_transaction(source, "no-such")


async def test_a_hanging_transaction_is_aborted_on_its_partition(broker, source):
    await broker.create_topics({"orders": 1})
    partition = broker.core.partitions.get("orders", 0)
    record = Record(value=b"1", timestamp=broker.clock.now_ms())
    batch = build_batch([record], producer_id=77, producer_epoch=3, base_sequence=0, transactional=True)
    partition.log.append_as_follower(batch, leader_epoch=0, now_ms=broker.clock.now_ms())
    partition.high_watermark = partition.log.log_end_offset
    with pytest.raises(ActionFailed, match="producer 78 has no open transaction there"):
        await group_actions.abort_hanging(source, "orders", 0, 78)
    await group_actions.abort_hanging(source, "orders", 0, 77)
    assert (await transactions(source)).open == ()
