"""The service against a Kafka that each test has to itself."""

import asyncio

import pytest
from confluent_kafka import KafkaException
from conftest import ORDERS
from orders.billing import GROUP, Billing
from orders.reminders import remind
from orders.shop import Shop


async def test_the_orders_of_a_customer_are_kept_in_their_order(kafka):
    async with Shop(kafka.bootstrap_servers) as shop:
        for total in range(5):
            await shop.place("somebody", total)
    records = await asyncio.to_thread(kafka.records, "placed")
    assert [record.json["total"] for record in records] == list(range(5))
    assert len({record.partition for record in records}) == 1


def test_each_order_is_billed_once(kafka_fork):
    billing = Billing(kafka_fork.bootstrap_servers)
    assert billing.bill(ORDERS) == ORDERS
    billing.close()
    kafka_fork.wait_for(group=GROUP, lag=0)
    assert len(kafka_fork.records("invoices", isolation_level="read_committed")) == ORDERS


def test_who_bills_and_dies_leaves_no_invoices(kafka_fork):
    dead = Billing(kafka_fork.bootstrap_servers)
    dead.bill(10, commit=False)
    kafka_fork.wait_for(transactional_id="billing", state="Ongoing")
    # A process that is gone sends no heartbeats; nobody waits for that here.
    kafka_fork.clock.advance(minutes=2)
    kafka_fork.wait_for(transactional_id="billing", state="CompleteAbort")
    assert kafka_fork.records("invoices", isolation_level="read_committed") == []


def test_two_that_bill_are_one_too_many(kafka_fork):
    first = Billing(kafka_fork.bootstrap_servers)
    second = Billing(kafka_fork.bootstrap_servers)
    with pytest.raises(KafkaException, match=r"fenced|epoch"):
        first.bill(1)
    first.close()
    second.close()


@pytest.mark.kafka(topics={"invoices": 1})
def test_customers_are_reminded_of_all_they_have_to_pay(kafka):
    kafka.produce("invoices", [("somebody", {"due": 7}), ("other", {"due": 1}), ("somebody", {"due": 5})])
    assert remind(kafka.bootstrap_servers, 3) == {"somebody": 12, "other": 1}
    assert kafka.lag("reminders") == 0
    assert [record.key for record in kafka.records("reminders")] == [b"somebody", b"other", b"somebody"]


def test_a_broker_that_starts_again_loses_nothing(kafka_fork):
    billed = 0
    for count in (50, ORDERS - 50):
        billing = Billing(kafka_fork.bootstrap_servers)
        billed += billing.bill(count)
        billing.close()
        kafka_fork.kill()
        kafka_fork.start()
    assert billed == ORDERS
    customers = [record.key for record in kafka_fork.records("placed")]
    assert sorted(r.key for r in kafka_fork.records("invoices", isolation_level="read_committed")) == sorted(customers)


def test_names_are_a_tests_own_where_the_broker_is_shared(kafka_session):
    topic = kafka_session.topic("placed", 1)
    kafka_session.produce(topic, [{"total": 1}])
    assert list(kafka_session.topics) == [topic]
