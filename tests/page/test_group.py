"""A group is shown as its real members have it, with a lag in records that no client can know."""

import asyncio

import pytest
from aiokafka import TopicPartition

from odradek.page.facts.group import group
from odradek.page.facts.source import Missing
from odradek.testing import NewTopic
from tests.page.conftest import consuming, producing, until
from tests.share_consumers import GROUP, TOPIC, polled, set_group_configs, share_consumer_beside


async def test_members_have_their_partitions_and_their_software(broker, source):
    await broker.create_topics({"orders": 3})
    async with consuming(broker, "orders", group_id="billing", client_id="worker", group_instance_id="one") as consumer:
        await consumer.getmany()
        found = await group(source, "billing")
    [member] = found.about.members
    assert (found.listed.kind, found.about.state, found.about.assignor) == ("classic", "Stable", "roundrobin")
    assert (found.listed.coordinator, found.address) == (1, broker.bootstrap_servers)
    assert (member.client_id, member.instance_id, member.host) == ("worker", "one", "127.0.0.1")
    assert member.partitions == (("orders", 0), ("orders", 1), ("orders", 2))
    assert [row.member_id for row in found.partitions] == [member.member_id] * 3
    assert set(found.software) == {member.member_id}


async def commit(broker, group_id, settings=None, **offsets):
    async with consuming(broker, group_id=group_id, **(settings or {})) as consumer:
        consumer.assign([TopicPartition(topic, 0) for topic in offsets])
        await consumer.commit({TopicPartition(topic, 0): offset for topic, offset in offsets.items()})


async def test_the_lag_in_records_does_not_count_markers_and_aborted_records(broker, source):
    await broker.create_topics({"orders": 1})
    async with producing(broker, transactional_id="t") as producer:
        async with producer.transaction():
            for number in range(3):
                await producer.send_and_wait("orders", b"%d" % number)
        await producer.begin_transaction()
        for number in range(4):
            await producer.send_and_wait("orders", b"%d" % number)
        await producer.abort_transaction()
    await broker.produce("orders", [b"5", b"6"])
    # Three records and a marker, four aborted ones and a marker, two records: 11 offsets.
    await commit(broker, "billing", orders=1)
    [row] = (await group(source, "billing")).partitions
    assert (row.committed_offset, row.end_offset, row.lag) == (1, 11, 10)
    assert (row.lag_records, row.not_counted, row.is_at_least) == (4, 6, False)
    found = await group(source, "billing")
    assert (found.lag, found.lag_records, found.about.members) == (10, 4, ())


async def test_the_lag_in_records_does_not_count_what_compaction_has_removed(broker, source):
    configs = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}
    await broker.create_topics({"orders": NewTopic(1, configs)})
    await broker.produce("orders", [(b"key %d" % (number % 2), b"x" * 300_000) for number in range(10)])
    await commit(broker, "billing", orders=0)
    assert (await group(source, "billing")).lag_records == 10
    broker.core.log_cleaner.clean_due()
    log = broker.core.partitions.get("orders", 0).log

    async def cleaned():
        return log.cleaned_offset

    cleaned_up_to = await until(cleaned)
    found = await group(source, "billing")
    # Of what was cleaned, the last record of each key is left.
    assert (found.lag, found.lag_records) == (10, 10 - cleaned_up_to + 2)


async def test_a_bounded_count_says_at_least_and_goes_on_at_the_next_look(broker, source, monkeypatch):
    monkeypatch.setattr("odradek.page.facts.group.MOST_BATCHES", 1)
    monkeypatch.setattr("odradek.page.counting._AT_ONCE", 10)
    await broker.create_topics({"orders": 1})
    for number in range(25):
        await broker.produce("orders", [b"%d" % number] * 2)
    await commit(broker, "billing", orders=1)
    counts = []
    while not counts or counts[-1][1]:
        [row] = (await group(source, "billing")).partitions
        counts.append((row.lag_records, row.is_at_least))
    assert counts == [(19, True), (39, True), (49, False)]


async def test_a_transaction_that_is_aborted_later_is_taken_out_of_the_count(broker, source):
    await broker.create_topics({"orders": 1})
    await commit(broker, "billing", orders=0)
    async with producing(broker, transactional_id="t") as producer:
        await producer.begin_transaction()
        await producer.send_and_wait("orders", b"1")
        assert (await group(source, "billing")).lag_records == 1
        await producer.abort_transaction()
    assert (await group(source, "billing")).lag_records == 0


async def test_rebalances_are_shown_with_their_reasons(broker, source):
    await broker.create_topics({"orders": 2})

    async def both():
        found = await group(source, "billing")
        return found if len(found.about.members) == 2 and found.about.state == "Stable" else None

    async with (
        consuming(broker, "orders", group_id="billing", client_id="first"),
        consuming(broker, "orders", group_id="billing", client_id="second"),
    ):
        await until(both)
    found = (await group(source, "billing")).rebalances
    second, first = [each for each in reversed(found) if each.joined][::-1]
    assert (first.members, first.joined[0].startswith("first")) == (1, True)
    assert (second.members, second.joined[0].startswith("second")) == (2, True)
    assert "joined" in " ".join(second.why) or second.cause
    assert first.at_ms <= second.at_ms <= broker.clock.now_ms()
    assert all(each.took_ms is not None for each in found)


async def test_moves_of_a_consumer_group_are_shown_with_their_reasons(broker, source):
    import confluent_kafka

    await broker.create_topics({"orders": 2})
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "billing", "group.protocol": "consumer"}

    def join(client_id):
        consumer = confluent_kafka.Consumer({**settings, "client.id": client_id})
        consumer.subscribe(["orders"])
        return consumer

    first = join("first")

    async def has(count):
        for consumer in consumers:
            await asyncio.to_thread(consumer.poll, 0.05)
        return sum(bool(consumer.assignment()) for consumer in consumers) == count

    consumers = [first]
    await until(lambda: has(1))
    consumers.append(join("second"))
    await until(lambda: has(2))
    found = await group(source, "billing")
    for consumer in consumers:
        await asyncio.to_thread(consumer.close)
    assert (found.listed.kind, found.about.assignor, len(found.about.members)) == ("consumer", "uniform", 2)
    assert all(each.startswith("confluent-kafka-python ") for each in found.software.values())
    moved = found.rebalances[0]
    assert (moved.kind, moved.members, moved.epoch) == ("assigned", 2, found.about.epoch)
    assert "joined" in moved.why[0]
    assert "its owner had more than its share" in moved.moves[0]


async def test_a_share_group_has_start_offsets_and_records_in_flight(broker, source):
    await broker.create_topics({TOPIC: 1})
    await broker.produce(TOPIC, [b"a", b"b", b"c"])
    await asyncio.to_thread(set_group_configs, broker.bootstrap_servers)
    async with share_consumer_beside(broker, "worker") as worker:
        messages = await asyncio.to_thread(polled, worker)
        [row] = (await group(source, GROUP)).partitions
        assert (row.committed_offset, row.end_offset) == (None, 3)
        worker.acknowledge(messages[0])
        await asyncio.to_thread(worker.commit_sync)
        found = await group(source, GROUP)
    [member] = found.about.members
    assert (found.is_share, found.about.state, found.about.assignor) == (True, "Stable", "simple")
    assert (member.client_id, member.partitions) == ("worker", ((TOPIC, 0),))
    [row] = found.partitions
    # The stored start offset follows with the next write, as Kafka's does.
    assert (row.committed_offset, row.end_offset, row.lag) == (0, 3, 2)
    [held] = found.in_flight
    assert (held.first_offset, held.last_offset, held.state, held.delivery_count) == (1, 2, "ACQUIRED", 1)
    assert (held.member_id, held.client_id) == (member.member_id, "worker")
    assert 0 < held.lock_left_ms <= 30_000
    assert found.in_flight_records == 2
    assert {(each.kind, each.members) for each in found.rebalances} == {("assigned", 1)}
    found = await group(source, GROUP)
    assert (found.about.members, found.in_flight, found.in_flight_records) == ((), (), 0)


async def test_a_group_that_is_not_there_is_missing(source):
    with pytest.raises(Missing, match="there is no such group"):
        await group(source, "no-such-group")
