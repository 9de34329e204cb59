"""librdkafka's consumers of share groups, which are not served: they are told so at once."""

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.clients.conftest import CLIENT_TIMEOUT_S


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
