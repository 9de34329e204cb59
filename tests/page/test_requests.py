"""Requests are shown in their order, and counted for each client."""

import asyncio

import confluent_kafka
import pytest

from odradek.page.facts.requests import clients, exchange, timeline
from odradek.page.facts.source import Missing
from odradek.page.watch import PAGE_CLIENT_ID
from tests.page.conftest import consuming, producing, until


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
    assert (asked.client_id, asked.errors, answer.outcome.startswith("NONE")) == ("shop", (), True)
    assert answer.took_ms >= 0
    assert "rebalance completed" in " ".join(row.text for row in found.rows if row.kind == "decision")
    assert PAGE_CLIENT_ID not in {row.client_id for row in found.rows}
    assert {line.client_id for line in found.lifelines} >= {"shop", "worker"}
    read = await exchange(source, asked.place)
    assert (read["api"], read["outcome"]) == ("PRODUCE", "answered")
    with pytest.raises(Missing):
        await exchange(source, 10**9)


async def test_the_timeline_goes_on_from_the_last_row(broker, source):
    await broker.create_topics({"orders": 1})
    source.watch.enter_requests()
    async with producing(broker, client_id="shop") as producer:
        first = await timeline(source)
        await producer.send_and_wait("orders", b"1")
        rest = await timeline(source, first.last)
        assert [row.api for row in rest.rows if row.kind == "request" and row.client_id == "shop"][-1] == "Produce"
        assert rest.rows[0].place > first.last
        assert not rest.lost
        assert (await timeline(source, rest.last)).rows == ()
        await producer.send_and_wait("orders", b"2")
        assert (await timeline(source, rest.last, limit=1)).lost
    source.watch.leave_requests()
    assert not (await timeline(source)).is_recording


async def test_a_client_has_its_requests_errors_and_software(broker, source):
    await broker.create_topics({"orders": 1})

    def write():
        settings = {"bootstrap.servers": broker.bootstrap_servers, "client.id": "shop", "message.max.bytes": 5_000_000}
        producer = confluent_kafka.Producer(settings)
        producer.produce("orders", b"1")
        producer.flush()
        producer.produce("orders", b"x" * 2_000_000)
        producer.flush()

    await asyncio.to_thread(write)
    [shop] = [row for row in await clients(source) if row.client_id == "shop"]
    apis = {row.api: row for row in shop.apis}
    assert (shop.software, bool(shop.version), shop.host, shop.user) == (
        "confluent-kafka-python",
        True,
        "127.0.0.1",
        "User:ANONYMOUS",
    )
    assert (apis["Produce"].requests, apis["Produce"].errors) == (2, (("MESSAGE_TOO_LARGE", 1),))
    assert apis["Produce"].took_ms >= apis["Produce"].longest_ms > 0
    assert (shop.errors, shop.throttle_ms) == (1, 0)
    assert shop.requests == sum(row.requests for row in shop.apis)
    assert PAGE_CLIENT_ID not in {row.client_id for row in await clients(source)}


async def test_metrics_that_a_client_pushes_are_shown_with_it(broker, source):
    await broker.subscribe_client_metrics(interval_ms=100)
    settings = {"bootstrap.servers": broker.bootstrap_servers, "client.id": "shop"}
    producer = confluent_kafka.Producer(settings)

    async def pushed():
        await asyncio.to_thread(producer.poll, 0.05)
        return [row for row in await clients(source) if row.client_id == "shop" and row.telemetry]

    [shop] = await until(pushed)
    assert all(each.name for each in shop.telemetry)
    await asyncio.to_thread(producer.flush)


async def test_throttling_is_summed_up(broker, source):
    from odradek.protocol.api_keys import ApiKey
    from odradek.protocol.message_types import alter_client_quotas as quotas

    entity = quotas.RequestEntityData(entity_type="client-id", entity_name="shop")
    operation = quotas.OpData(key="producer_byte_rate", value=1000.0)
    entry = quotas.RequestEntryData(entity=[entity], ops=[operation])
    await broker.ask(ApiKey.ALTER_CLIENT_QUOTAS, quotas.AlterClientQuotasRequest(entries=[entry]), 1)
    await broker.create_topics({"orders": 1})
    async with producing(broker, client_id="shop") as producer:
        await producer.send_and_wait("orders", b"x" * 20_000)
        [shop] = [row for row in await clients(source) if row.client_id == "shop"]
    assert shop.throttle_ms > 0
