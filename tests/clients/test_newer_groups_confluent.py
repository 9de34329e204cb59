"""librdkafka's consumers of the newer protocols of groups, which are not served: they are told so at once."""

import confluent_kafka
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from tests.clients.conftest import CLIENT_TIMEOUT_S


def test_a_consumer_of_the_consumer_protocol_fails_at_once(broker, new_topic, new_name):
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": new_name(), "group.protocol": "consumer"})
    try:
        consumer.subscribe([new_topic()])
        message = consumer.poll(CLIENT_TIMEOUT_S)
        assert message is not None, "the consumer waits for ever"
        assert message.error().code() == KafkaError._FATAL
        assert "API version not supported" in message.error().str()
    finally:
        consumer.close()


@pytest.mark.skipif(not hasattr(confluent_kafka, "ShareConsumer"), reason="this confluent-kafka has no share consumers yet")
def test_a_share_consumer_fails_at_once(broker, new_topic, new_name):
    consumer = confluent_kafka.ShareConsumer({"bootstrap.servers": broker.address, "group.id": new_name()})
    try:
        consumer.subscribe([new_topic()])
        with pytest.raises(KafkaException) as failure:
            consumer.poll(CLIENT_TIMEOUT_S)
        assert failure.value.args[0].code() == KafkaError.UNSUPPORTED_VERSION
        assert failure.value.args[0].fatal()
    finally:
        consumer.close()
