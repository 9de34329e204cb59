"""A member of a share group in a process of its own: librdkafka's, by way of confluent-kafka.

    python -m tests.clients.shares.share_member ADDRESS GROUP TOPIC work|hold

A record's value says how to acknowledge it: ``accept``, ``release`` (accepted from the second delivery on) or ``reject``. The
member tells on stdout

    got PARTITION OFFSET COUNT              a record, and the number of its deliveries
    done PARTITION OFFSET WORD              an acknowledgement that the broker has confirmed
    lost PARTITION OFFSET WORD REASON       one that failed, or whose answer was lost
    holds                                   it was told ``hold``, has records, and waits to be killed

and leaves the group when its stdin ends. ``members/`` has the same in Java and Go.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

from confluent_kafka import AcknowledgeType, KafkaException, ShareConsumer

if TYPE_CHECKING:
    from confluent_kafka import Message, TopicPartition

_COMMIT_TIMEOUT_S = 5.0


class ShareMember:
    """The words of acknowledgements are kept until their outcomes are known."""

    def __init__(self, address: str, group: str, topic: str, *, holds: bool) -> None:
        self._holds = holds
        self._words: dict[tuple[int, int], str] = {}
        self._ends = threading.Event()
        self._consumer = ShareConsumer(
            {
                "bootstrap.servers": address,
                "group.id": group,
                "share.acknowledgement.mode": "explicit",
                "reconnect.backoff.max.ms": 200,
                "log_level": 2,
            }
        )
        self._consumer.set_acknowledgement_commit_callback(self._committed)
        self._consumer.subscribe([topic])
        threading.Thread(target=self._wait_for_the_end, daemon=True).start()

    def run(self) -> None:
        """Consume until the end."""
        while not self._ends.is_set():
            try:
                records = [each for each in self._consumer.poll(0.2) if each.error() is None]
                for each in records:
                    self._take(each)
                if records and self._holds:
                    say("holds")
                    time.sleep(3600)
                self._consumer.commit_sync(_COMMIT_TIMEOUT_S)
            except KafkaException as error:
                say("failed", error.args[0].name())
        self._consumer.close()

    def _take(self, record: Message) -> None:
        place = record.partition(), record.offset()
        count = record.delivery_count()
        say("got", *place, count)
        if not self._holds:
            word = record.value().decode()
            self._words[place] = word = "accept" if word == "release" and count > 1 else word
            self._consumer.acknowledge(record, AcknowledgeType[word.upper()])

    def _committed(self, offsets: dict[TopicPartition, set[int]], failure: KafkaException | None) -> None:
        for partition, of_partition in offsets.items():
            for offset in of_partition:
                word = self._words.get((partition.partition, offset))
                if failure is None:
                    say("done", partition.partition, offset, word)
                else:
                    say("lost", partition.partition, offset, word, failure.args[0].name())

    def _wait_for_the_end(self) -> None:
        sys.stdin.read()
        self._ends.set()


def say(*words: object) -> None:
    """Tell a line on stdout."""
    print(*words, flush=True)


if __name__ == "__main__":
    ShareMember(*sys.argv[1:4], holds=sys.argv[4] == "hold").run()
