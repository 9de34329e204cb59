"""Customers are reminded of what they have to pay."""

import json

from kafka import KafkaConsumer, KafkaProducer


def remind(bootstrap_servers: str, count: int) -> dict[str, int]:
    """Remind of the next ``count`` invoices; what each customer has to pay."""
    due: dict[str, int] = {}
    consumer = KafkaConsumer(
        "invoices",
        bootstrap_servers=bootstrap_servers,
        group_id="reminders",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        consumer_timeout_ms=5_000,
    )
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers)
    for _, invoice in zip(range(count), consumer, strict=False):
        customer = invoice.key.decode()
        due[customer] = due.get(customer, 0) + json.loads(invoice.value)["due"]
        producer.send("reminders", key=invoice.key, value=b"please pay").get(10)
    consumer.commit()
    producer.close()
    consumer.close()
    return due
