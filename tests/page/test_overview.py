"""The overview says what real clients did."""

import pytest
from aiokafka.errors import KafkaError

from odradek.page.facts.overview import overview
from odradek.page.watch import PAGE_CLIENT_ID
from tests.page.conftest import consuming, producing, until


def row_of(rows, **about):
    [found] = [row for row in rows if all(getattr(row, name) == value for name, value in about.items())]
    return found


async def test_topics_have_their_records_sizes_and_the_lag_of_their_groups(broker, source):
    await broker.create_topics({"orders": 3, "empty": 1})
    async with producing(broker) as producer, consuming(broker, "orders", group_id="billing") as consumer:
        for number in range(10):
            await producer.send_and_wait("orders", b"%d" % number, partition=number % 3)
        await consumer.getone()
        await consumer.commit()
        found = await overview(source)
        orders, empty = row_of(found.topics, name="orders"), row_of(found.topics, name="empty")
        assert (orders.partitions, orders.replication_factor, orders.records, orders.lag) == (3, 1, 10, 9)
        assert orders.disk_bytes > 0 == orders.under_replicated
        assert (empty.records, empty.lag, empty.disk_bytes) == (0, None, 0)
        billing = row_of(found.groups, group="billing")
        assert (billing.kind, billing.state, billing.members, billing.lag) == ("classic", "Stable", 1, 9)
        assert billing.topics == ("orders",)
    assert row_of((await overview(source)).groups, group="billing").members == 0


async def test_rates_are_those_between_two_looks(broker, source):
    await broker.create_topics({"orders": 1})
    await overview(source)
    async with producing(broker) as producer:
        for _ in range(100):
            await producer.send_and_wait("orders", b"x" * 100)

    async def rates():
        found = row_of((await overview(source)).topics, name="orders")
        return found.rates if found.rates.records_in else None

    found = await until(rates)
    assert found.bytes_in > found.records_in > 0
    assert found.bytes_out == found.records_out == 0


async def test_clients_are_shown_with_their_software_user_and_listener(broker, source):
    async with producing(broker, client_id="shop") as producer:
        await producer.send_and_wait("orders", b"1")
        found = await overview(source)
    shop = row_of(found.clients[:1], client_id="shop")
    assert (shop.about.peer[0], shop.about.principal, shop.is_page) == ("127.0.0.1", "User:ANONYMOUS", False)
    assert shop.sent_bytes > 0 < shop.received_bytes
    page = row_of(found.clients[-1:], client_id=PAGE_CLIENT_ID)
    assert page.is_page


async def test_errors_are_shown_with_the_client_that_was_told(broker, source):
    await broker.create_topics({"orders": 1})
    async with producing(broker, client_id="shop", max_request_size=10_000_000) as producer:
        with pytest.raises(KafkaError):
            await producer.send_and_wait("orders", b"x" * 2_000_000)
    errors = (await overview(source)).errors
    told = row_of(errors, client_id="shop")
    assert (told.api, told.error, told.count, told.host) == ("Produce", "MESSAGE_TOO_LARGE", 1, "127.0.0.1")
    assert told.at_ms <= broker.clock.now_ms()


async def test_errors_from_before_the_page_was_opened_have_no_client(broker, source):
    await broker.create_topics({"orders": 1})
    source.watch.leave()
    async with producing(broker, max_request_size=10_000_000) as producer:
        with pytest.raises(KafkaError):
            await producer.send_and_wait("orders", b"x" * 2_000_000)
    source.watch.enter()
    told = row_of((await overview(source)).errors, error="MESSAGE_TOO_LARGE")
    assert (told.api, told.count, told.client_id, told.at_ms) == ("Produce", 1, None, None)


async def test_brokers_have_their_replicas_and_disks(broker, source):
    await broker.create_topics({"orders": 3})
    await broker.produce("orders", [b"x" * 1000])
    found = await overview(source)
    [only] = found.brokers
    assert (only.is_this, only.is_controller, only.leaders, only.replicas, only.in_sync) == (True, True, 3, 3, 3)
    assert only.log_bytes > 1000
    assert found.unreachable == ()
    assert not found.is_partial


async def test_without_a_viewer_of_requests_there_is_no_gate(broker, source):
    assert broker.core.dispatcher._gate is None
    source.watch.enter_requests()
    assert source.watch in broker.core.dispatcher._gate.gates
    source.watch.leave_requests()
    assert broker.core.dispatcher._gate is None
