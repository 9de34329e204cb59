"""Requests are shown in their order, and counted for each client."""

import asyncio

import confluent_kafka
import pytest

from odradek.page.facts.requests import clients, exchange, timeline
from odradek.page.facts.source import Missing
from odradek.page.watch import PAGE_CLIENT_ID
from tests.page.conftest import consuming, producing, until


@pytest.fixture
def watched(source):
    """The facts, while somebody looks at the requests."""
    source.watch.enter_requests()
    yield source
    source.watch.leave_requests()


async def test_the_timeline_has_requests_answers_and_decisions_in_order(broker, source):
    await broker.create_topics({"orders": 1})
    source.watch.enter_requests()
    async with producing(broker, client_id="shop") as producer:
        await producer.send_and_wait("orders", b"1")
    async with consuming(broker, "orders", group_id="billing", client_id="worker") as consumer:
        await consumer.getone()
    found = await timeline(source, limit=1_000)
    source.watch.leave_requests()
    assert [row.place for row in found.rows] == sorted(row.place for row in found.rows)
    [asked] = [row for row in found.rows if row.api == "Produce" and row.kind == "request"]
    [answer] = [row for row in found.rows if row.request == asked.place and row.kind == "answer"]
    assert (asked.client_id, asked.errors, answer.text.startswith("NONE, ")) == ("shop", (), True)
    assert "rebalance completed" in " ".join(row.text for row in found.rows if row.kind == "decision")
    assert PAGE_CLIENT_ID not in {row.client_id for row in found.rows}
    assert set(found.client_ids.values()) >= {"shop", "worker"}
    assert not found.is_cut
    cut = await timeline(source, limit=2)
    assert (cut.rows, cut.is_cut) == (found.rows[-2:], True)
    read = await exchange(source, asked.place)
    assert (read["api"], read["outcome"]) == ("PRODUCE", "answered")
    with pytest.raises(Missing):
        await exchange(source, 10**9)


async def test_a_client_has_its_requests_errors_and_software(broker, watched):
    await broker.create_topics({"orders": 1})

    def write():
        settings = {"bootstrap.servers": broker.bootstrap_servers, "client.id": "shop", "message.max.bytes": 5_000_000}
        producer = confluent_kafka.Producer(settings)
        producer.produce("orders", b"1")
        producer.flush()
        producer.produce("orders", b"x" * 2_000_000)
        producer.flush()

    await asyncio.to_thread(write)
    [shop] = [row for row in await clients(watched) if row.about.client_id == "shop"]
    apis = shop.apis
    assert shop.software.startswith("confluent-kafka-python ")
    assert (shop.about.host, shop.about.user) == ("127.0.0.1", "User:ANONYMOUS")
    assert (apis["Produce"].requests, apis["Produce"].errors) == (2, {"MESSAGE_TOO_LARGE": 1})
    assert apis["Produce"].took_ms >= apis["Produce"].longest_ms > 0
    assert (shop.errors, shop.throttle_ms) == (1, 0)
    assert shop.requests == sum(row.requests for row in apis.values())
    assert PAGE_CLIENT_ID not in {row.about.client_id for row in await clients(watched)}


async def test_metrics_that_a_client_pushes_are_shown_with_it(broker, watched):
    await broker.subscribe_client_metrics(interval_ms=100)
    settings = {"bootstrap.servers": broker.bootstrap_servers, "client.id": "shop"}
    producer = confluent_kafka.Producer(settings)

    async def pushed():
        await asyncio.to_thread(producer.poll, 0.05)
        return [row for row in await clients(watched) if row.about.client_id == "shop" and row.telemetry]

    [shop] = await until(pushed)
    assert all(each.name for each in shop.telemetry)
    await asyncio.to_thread(producer.flush)


async def test_throttling_is_summed_up(broker, watched):
    from odradek.protocol.api_keys import ApiKey
    from odradek.protocol.message_types import alter_client_quotas as quotas

    entity = quotas.RequestEntityData(entity_type="client-id", entity_name="shop")
    operation = quotas.OpData(key="producer_byte_rate", value=1000.0)
    entry = quotas.RequestEntryData(entity=[entity], ops=[operation])
    await broker.ask(ApiKey.ALTER_CLIENT_QUOTAS, quotas.AlterClientQuotasRequest(entries=[entry]), 1)
    await broker.create_topics({"orders": 1})
    async with producing(broker, client_id="shop") as producer:
        await producer.send_and_wait("orders", b"x" * 20_000)
        [shop] = [row for row in await clients(watched) if row.about.client_id == "shop"]
    assert shop.throttle_ms > 0
