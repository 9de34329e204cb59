"""Whether one client library is let in by TLS: ``python -m tests.clients.let_in CLIENT ADDRESS CA CERTIFICATE``.

It prints "let in", or the error that the client has. CERTIFICATE is a file with certificate and key, or empty. What a client
leaves open when it fails ends with this process.
"""

import asyncio
import os
import sys

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError as AiokafkaError
from aiokafka.helpers import create_ssl_context
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

TIMEOUT_MS = 3000


def kafka_python(address, ca, certificate):
    try:
        admin = KafkaAdminClient(
            bootstrap_servers=address,
            security_protocol="SSL",
            ssl_cafile=ca,
            ssl_certfile=certificate or None,
            bootstrap_timeout_ms=TIMEOUT_MS,
            request_timeout_ms=TIMEOUT_MS,
        )
        assert admin.describe_cluster()["brokers"]
    except KafkaError as error:
        return type(error).__name__
    return "let in"


async def aiokafka(address, ca, certificate):
    context = create_ssl_context(cafile=ca, certfile=certificate or None)
    producer = AIOKafkaProducer(
        bootstrap_servers=address, security_protocol="SSL", ssl_context=context, request_timeout_ms=TIMEOUT_MS
    )
    try:
        await producer.start()
        assert await producer.partitions_for("topic-by-tls")
    except AiokafkaError as error:
        return type(error).__name__
    return "let in"


def confluent_kafka(address, ca, certificate):
    own = {"ssl.certificate.location": certificate, "ssl.key.location": certificate} if certificate else {}
    try:
        admin = AdminClient({"bootstrap.servers": address, "security.protocol": "SSL", "ssl.ca.location": ca, **own})
        assert admin.list_topics(timeout=TIMEOUT_MS / 1000).brokers
    except KafkaException as error:
        return error.args[0].name()
    return "let in"


CLIENTS = {
    "kafka-python": kafka_python,
    "aiokafka": lambda *asked: asyncio.run(aiokafka(*asked)),
    "confluent-kafka": confluent_kafka,
}

if __name__ == "__main__":
    print(CLIENTS[sys.argv[1]](*sys.argv[2:]), flush=True)
    os._exit(0)
