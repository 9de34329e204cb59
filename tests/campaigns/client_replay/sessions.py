"""A session of each client library: the same application, written for kafka-python, aiokafka and confluent-kafka."""

import asyncio
from collections.abc import Callable

import aiokafka
import confluent_kafka
import kafka
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AiokafkaTopic
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient
from kafka.admin import NewTopic as KafkaPythonTopic

from odradek.testing import Broker, Timeline
from tests.campaigns.wire_differential.settings import SETTINGS

PARTITIONS = 2
RECORDS = 6
_POLL_S = 10


def record(session: Callable[[str], None]) -> Timeline:
    """The timeline of a session against an odradek of its own."""
    with Broker(configs=SETTINGS, timeline=True) as broker:
        session(broker.bootstrap_servers)
    return Timeline(broker.timeline)


def kafka_python(servers: str) -> None:
    """By kafka-python."""
    admin = KafkaAdminClient(bootstrap_servers=servers, client_id="admin")
    admin.create_topics([KafkaPythonTopic(name, PARTITIONS, 1) for name in ("orders", "invoices")])
    with kafka.KafkaProducer(bootstrap_servers=servers, client_id="till", enable_idempotence=True, acks="all") as producer:
        for number in range(RECORDS):
            producer.send("orders", b"order %d" % number, partition=number % PARTITIONS).get(_POLL_S)
    consumer = kafka.KafkaConsumer(
        "orders",
        bootstrap_servers=servers,
        client_id="biller",
        group_id="billing",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    read: list[object] = []
    while len(read) < RECORDS:
        for found in consumer.poll(_POLL_S * 1000).values():
            read += found
    consumer.commit()
    with kafka.KafkaProducer(bootstrap_servers=servers, client_id="sales", transactional_id="sales") as producer:
        producer.init_transactions()
        for is_good in (False, True):
            producer.begin_transaction()
            producer.send("invoices", b"good" if is_good else b"bad", partition=0).get(_POLL_S)
            place = kafka.TopicPartition("orders", 0)
            metadata = kafka.structs.OffsetAndMetadata(1, "", -1)
            producer.send_offsets_to_transaction({place: metadata}, consumer.group_metadata())
            if is_good:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    consumer.close()
    reader = kafka.KafkaConsumer(bootstrap_servers=servers, client_id="reader", isolation_level="read_committed")
    reader.assign([kafka.TopicPartition("invoices", 0)])
    reader.seek_to_beginning()
    [[invoice]] = reader.poll(_POLL_S * 1000).values()
    assert invoice.value == b"good"
    reader.close()
    admin.list_groups()
    admin.delete_topics(["invoices"])
    admin.close()


def aiokafka_(servers: str) -> None:
    """By aiokafka."""
    asyncio.run(_aiokafka(servers))


async def _aiokafka(servers: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers, client_id="admin")
    await admin.start()
    await admin.create_topics([AiokafkaTopic(name, PARTITIONS, 1) for name in ("orders", "invoices")])
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=servers, client_id="till", enable_idempotence=True) as producer:
        for number in range(RECORDS):
            await producer.send_and_wait("orders", b"order %d" % number, partition=number % PARTITIONS)
    consumer = aiokafka.AIOKafkaConsumer(
        "orders",
        bootstrap_servers=servers,
        client_id="biller",
        group_id="billing",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    for _ in range(RECORDS):
        await asyncio.wait_for(consumer.getone(), _POLL_S)
    await consumer.commit()
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=servers, client_id="sales", transactional_id="sales")
    async with producer:
        for is_good in (False, True):
            await producer.begin_transaction()
            await producer.send_and_wait("invoices", b"good" if is_good else b"bad", partition=0)
            await producer.send_offsets_to_transaction({aiokafka.TopicPartition("orders", 0): 1}, "billing")
            if is_good:
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()
    await consumer.stop()
    reader = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=servers, client_id="reader", isolation_level="read_committed", auto_offset_reset="earliest"
    )
    await reader.start()
    reader.assign([aiokafka.TopicPartition("invoices", 0)])
    assert (await asyncio.wait_for(reader.getone(), _POLL_S)).value == b"good"
    await reader.stop()
    await admin.list_consumer_groups()
    await admin.delete_topics(["invoices"])
    await admin.close()


def confluent(servers: str) -> None:
    """By confluent-kafka, which is librdkafka."""
    common = {"bootstrap.servers": servers}
    admin = AdminClient({**common, "client.id": "admin"})
    for created in admin.create_topics(
        [confluent_kafka.admin.NewTopic(name, PARTITIONS, 1) for name in ("orders", "invoices")]
    ).values():
        created.result(_POLL_S)
    producer = confluent_kafka.Producer({**common, "client.id": "till", "enable.idempotence": True, "linger.ms": 0})
    for number in range(RECORDS):
        producer.produce("orders", b"order %d" % number, partition=number % PARTITIONS)
        assert producer.flush(_POLL_S) == 0
    consumer = confluent_kafka.Consumer(
        {**common, "client.id": "biller", "group.id": "billing", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    consumer.subscribe(["orders"])
    read: list[object] = []
    while len(read) < RECORDS:
        read += consumer.consume(RECORDS - len(read), _POLL_S)
    consumer.commit(asynchronous=False)
    sales = confluent_kafka.Producer({**common, "client.id": "sales", "transactional.id": "sales", "linger.ms": 0})
    sales.init_transactions(_POLL_S)
    for is_good in (False, True):
        sales.begin_transaction()
        sales.produce("invoices", b"good" if is_good else b"bad", partition=0)
        place = confluent_kafka.TopicPartition("orders", 0, 1)
        sales.send_offsets_to_transaction([place], consumer.consumer_group_metadata(), _POLL_S)
        if is_good:
            sales.commit_transaction(_POLL_S)
        else:
            sales.abort_transaction(_POLL_S)
    consumer.close()
    reader = confluent_kafka.Consumer({**common, "client.id": "reader", "group.id": "none", "isolation.level": "read_committed"})
    reader.assign([confluent_kafka.TopicPartition("invoices", 0, 0)])
    [invoice] = reader.consume(1, _POLL_S)
    assert invoice.value() == b"good"
    reader.close()
    admin.list_consumer_groups().result(_POLL_S)
    for deleted in admin.delete_topics(["invoices"]).values():
        deleted.result(_POLL_S)


SESSIONS: dict[str, Callable[[str], None]] = {"kafka-python": kafka_python, "aiokafka": aiokafka_, "confluent-kafka": confluent}
