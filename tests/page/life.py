"""A broker's life for the views: topics, real clients at work, a group that has rebalanced, a transaction that is open."""

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager

from aiokafka.errors import KafkaError
from confluent_kafka import Producer

from odradek.testing import NewTopic
from tests.page.conftest import consuming, producing

CUSTOMERS = ("ada", "bo", "cleo", "dev", "eve", "finn")
ORDERS = 60
# The members stay, however busy the machine is.
_PATIENT = {"session_timeout_ms": 300_000, "max_poll_interval_ms": 600_000, "rebalance_timeout_ms": 30_000}


@asynccontextmanager
async def life(broker):
    """Topics, groups, clients and a transaction at work until the end of the block."""
    await broker.create_topics(
        {
            "orders": NewTopic(3, configs={"retention.ms": "86400000"}),
            "payments": 2,
            "stock": NewTopic(1, configs={"cleanup.policy": "compact"}),
            "audit": 1,
        }
    )
    async with AsyncExitStack() as stack:
        shop = await stack.enter_async_context(producing(broker, client_id="shop"))
        for number in range(ORDERS):
            customer = CUSTOMERS[number % len(CUSTOMERS)]
            order = {"order": 1000 + number, "customer": customer, "total": round(7.5 + number * 3.2, 2), "lines": number % 4 + 1}
            headers = [("trace", b"%08x" % (number * 7919))]
            await shop.send_and_wait("orders", json.dumps(order).encode(), customer.encode(), headers=headers)
        # Without a name it would end at once.
        stock = await _librdkafka(broker)
        first = await stack.enter_async_context(
            consuming(broker, "orders", group_id="billing", client_id="billing-1", **_PATIENT)
        )
        await first.getmany(timeout_ms=2_000, max_records=20)
        await first.commit()
        joining = asyncio.ensure_future(
            stack.enter_async_context(consuming(broker, "orders", group_id="billing", client_id="billing-2", **_PATIENT))
        )
        while not joining.done():
            await first.getmany(timeout_ms=100, max_records=1)
        await joining
        await _left_behind(broker)
        await _refused(broker)
        bank = await stack.enter_async_context(_bank(broker))
        async with bank.transaction():
            await bank.send_and_wait("payments", b"paid 1000", partition=0)
        await bank.begin_transaction()
        await bank.send_and_wait("payments", b"paid 1001", partition=0)
        await bank.send_and_wait("payments", b"paid 1002", partition=1)
        yield
        del stock
        await bank.abort_transaction()


def _bank(broker):
    return producing(broker, client_id="bank", transactional_id="bank-7", transaction_timeout_ms=900_000)


async def _librdkafka(broker):
    """A client that tells its name and version."""
    stock = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "warehouse"})
    for number in range(40):
        stock.produce("stock", json.dumps({"left": 40 - number}), key=f"article-{number % 5}")
    await asyncio.to_thread(stock.flush, 10)
    return stock


async def _left_behind(broker):
    """A group that is not there any more, and has not read all."""
    async with consuming(broker, "orders", group_id="reports", client_id="reports") as consumer:
        await consumer.getmany(timeout_ms=2_000, max_records=5)
        await consumer.commit()


async def _refused(broker):
    async with producing(broker, client_id="importer", max_request_size=10_000_000) as producer:
        try:
            await producer.send_and_wait("audit", b"x" * 2_000_000)
        except KafkaError:
            return
    raise AssertionError("a record of 2 MB was taken")
