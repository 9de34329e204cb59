"""A recorded session: a transaction, and a consumer that reads what it wrote."""

import pytest
from kafka import KafkaConsumer, KafkaProducer

from odradek.testing import Broker


@pytest.fixture(scope="package")
def recorded():
    """The timeline of the session, after its broker was stopped."""
    with Broker(timeline=True, topics={"orders": 1}) as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="till", transactional_id="sales")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"an order").get()
        producer.commit_transaction()
        producer.close()
        consumer = KafkaConsumer(
            *["orders"],
            group_id="billing",
            client_id="biller",
            auto_offset_reset="earliest",
            bootstrap_servers=broker.bootstrap_servers,
        )
        assert next(consumer).value == b"an order"
        consumer.commit()
        consumer.close()
        return broker.timeline
