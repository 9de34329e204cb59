"""librdkafka's producer, for tests in which the broker goes away: kafka-python leaves the socket of a refused connection open."""

import confluent_kafka

WITHIN_S = 10


class Librdkafka:
    """Sends to partition 0, and tries again by itself; ``wait`` until all is acknowledged."""

    def __init__(self, broker, **configs):
        self._client = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": 10, "reconnect.backoff.ms": 10, "log_level": 0}
            | {name.replace("_", "."): value for name, value in configs.items()}
        )

    def send(self, topic, value):
        """Queue a record."""
        self._client.produce(topic, value, partition=0)
        self._client.poll(0)

    def wait(self):
        """Until all that was sent has been acknowledged."""
        assert self._client.flush(WITHIN_S) == 0
