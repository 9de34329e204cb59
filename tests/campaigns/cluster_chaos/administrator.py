"""The administrator: creates topics and deletes them while brokers are harmed, by whichever broker answers.

What was answered is known to be; of the rest nobody knows. ``check_topics`` is pure.
"""

import threading
from collections.abc import Collection
from random import Random

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.campaigns.cluster_chaos.clients import CLIENT, PARTITIONS, Violation

PREFIX = "made-"
_REPLICAS = 3
_INTERVAL_S = 1.0
_REQUEST_TIMEOUT_S = 5.0
_MOST = 8


class Administrator:
    """Works until ``stop``. Names are used once."""

    def __init__(self, servers: str, seed: int) -> None:
        self.created: set[str] = set()
        self.deleted: set[str] = set()
        # Asked for, and never answered, or not with success.
        self.unknown: set[str] = set()
        self._asked = 0
        self._random = Random(seed)
        self._client = AdminClient({"bootstrap.servers": servers, **CLIENT})
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._live, name="administrator", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Wait for the request under way."""
        self._stopping.set()
        self._thread.join(60)

    def _live(self) -> None:
        while not self._stopping.wait(_INTERVAL_S):
            if len(self.created) >= _MOST or (self.created and self._random.random() < 0.4):
                self._delete(self._random.choice(sorted(self.created)))
            else:
                self._create()

    def _create(self) -> None:
        name = f"{PREFIX}{self._asked}"
        self._asked += 1
        asked = self._client.create_topics([NewTopic(name, PARTITIONS, _REPLICAS)], request_timeout=_REQUEST_TIMEOUT_S)
        try:
            asked[name].result()
        except KafkaException:
            self.unknown.add(name)
        else:
            self.created.add(name)

    def _delete(self, name: str) -> None:
        self.created.discard(name)
        try:
            self._client.delete_topics([name], request_timeout=_REQUEST_TIMEOUT_S)[name].result()
        except KafkaException:
            self.unknown.add(name)
        else:
            self.deleted.add(name)


def check_topics(found: Collection[str], created: Collection[str], deleted: Collection[str]) -> None:
    """``found`` are the topics that a broker has, by name. Raises Violation."""
    lost, back = sorted(set(created) - set(found)), sorted(set(deleted) & set(found))
    if lost:
        raise Violation(f"topics that were created are not there: {lost[:5]}")
    if back:
        raise Violation(f"topics that were deleted are there: {back[:5]}")
