"""Any broker's page shows the whole cluster."""

import pytest
from aiokafka import TopicPartition

from odradek.page.facts.cluster import cluster
from odradek.page.facts.group import group
from odradek.page.facts.overview import overview
from odradek.page.facts.records import at_end, read_back
from odradek.page.facts.topic import topic
from odradek.page.facts.transactions import transactions
from tests.page.conftest import consuming, page_of, producing, until
from tests.page.three_brokers import three_brokers

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
async def brokers(tmp_path):
    async with three_brokers(tmp_path) as brokers:
        yield brokers


async def test_each_brokers_page_shows_all_brokers_topics_groups_and_transactions(brokers):
    await brokers[0].create_topics({"orders": 6})
    async with producing(brokers[0], transactional_id="shop") as producer, producer.transaction():
        for index in range(6):
            await producer.send_and_wait("orders", b"%d" % index, partition=index)
        for broker in brokers:
            async with page_of(broker) as source:
                [row] = (await transactions(source)).open
                assert (row.transactional_id, len(row.partitions)) == ("shop", 6)
                assert all(each.holds_back for each in row.partitions)
    partitions = [TopicPartition("orders", index) for index in range(6)]
    async with consuming(brokers[2], group_id="billing") as consumer:
        consumer.assign(partitions)
        await consumer.commit(dict.fromkeys(partitions, 0))
    pages = []
    for number, broker in enumerate(brokers, 1):
        async with page_of(broker) as source:
            found = await overview(source)
            assert [each.about.broker_id for each in found.brokers] == [1, 2, 3]
            assert [each.about.broker_id for each in found.brokers if each.is_this] == [number]
            assert sum(each.leaders for each in found.brokers) >= 6
            [orders] = [each for each in found.topics if each.name == "orders"]
            # A record and a marker in each partition.
            assert (orders.records, orders.replication_factor, orders.under_replicated, orders.lag) == (12, 3, 0, 12)
            [billing] = found.groups
            assert (billing.group, billing.state, billing.lag) == ("billing", "Empty", 12)
            described = await group(source, "billing")
            assert (described.lag, described.lag_records, described.listed.coordinator) == (12, 6, billing.coordinator)
            assert (described.rebalances is None) is (billing.coordinator != number)
            tail = await read_back(source, "orders", await at_end(source, "orders"))
            pages.append([(each.partition, each.offset, each.mark) for each in tail.records])
            assert len({each.about.leader_id for each in (await topic(source, "orders")).partitions}) == 3
    assert pages[0] == pages[1] == pages[2]
    assert len(pages[0]) == 12


async def test_a_broker_that_is_gone_is_missed_by_the_others(brokers):
    await brokers[0].create_topics({"orders": 3})
    async with page_of(brokers[1]) as source:
        before = await cluster(source)
        assert (before.troubled, [each.is_this for each in before.brokers]) == ((), [False, True, False])
        assert (before.quorum.leader_id, [each.replica_id for each in before.quorum.current_voters]) == (1, [1])
        assert sorted(each.replica_id for each in before.quorum.observers) == [2, 3]
        assert {each.name for each in before.features if each.level} >= {"metadata.version", "group.version"}
        assert [each.replicas for each in before.brokers] == [3, 3, 3]
        await brokers[2].stop()

        async def is_missed():
            found = await cluster(source)
            return found if len(found.troubled) == 3 else None

        after = await until(is_missed, 60)
        assert all(set(each.about.isr_nodes) == {1, 2} for each in after.troubled)
        assert all(each.about.leader_id in (1, 2) for each in after.troubled)
        [gone] = [each for each in after.brokers if each.about.broker_id == 3]
        assert gone.about.is_fenced or gone.silence
        assert [each.under_replicated for each in (await overview(source)).topics if each.name == "orders"] == [3]
        await brokers[2].start()

        async def is_back():
            return not (await cluster(source)).troubled

        await until(is_back, 60)
