"""A group that reads the orders and commits, and what it may never see: a record twice behind a commit, a gap, a begin anew.

A partition of the orders has no transactions, so its offsets have no gaps. Behind a commit that was acknowledged the group goes
on exactly there, or further where the last commit was taken and its answer was lost. It never goes back to in front of it.
"""

import threading
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.campaigns.cluster_chaos.clients import CLIENT, ORDERS

GROUP = "watchers"
_BATCH = 50


class Progress:
    """What a group has been given and has committed, partition by partition. Pure."""

    def __init__(self) -> None:
        self.read = 0
        self.differences: list[str] = []
        # Up to where the group is certain to have got, and up to where it may have.
        self._committed: dict[int, int] = {}
        self._reached: dict[int, int] = {}
        self._next: dict[int, int] = {}

    def assigned(self) -> None:
        """The group's member goes on from what the coordinator has: the next offset of a partition may be another one."""
        self._next.clear()

    def delivered(self, partition: int, offset: int) -> None:
        """A record came."""
        committed, reached = self._committed.get(partition, 0), self._reached.get(partition, 0)
        expected = self._next.get(partition)
        if offset < committed:
            self.differences.append(f"the group began anew: {ORDERS}-{partition} at {offset}, and {committed} was committed")
        elif offset > reached:
            self.differences.append(f"the group missed records: {ORDERS}-{partition} from {reached} to {offset}")
        elif expected is not None and offset != expected:
            self.differences.append(f"the group was given {ORDERS}-{partition} {offset}, and not {expected}")
        self.read += 1
        self._next[partition] = offset + 1
        self._reached[partition] = max(reached, offset + 1)

    def committed(self, offsets: Mapping[int, int]) -> None:
        """A commit was acknowledged."""
        for partition, offset in offsets.items():
            self._committed[partition] = max(offset, self._committed.get(partition, 0))


class Watcher:
    """Reads and commits until ``stop``. The consumer is one and the same however often brokers come and go."""

    def __init__(self, servers: str) -> None:
        self.progress = Progress()
        self.rebalances = 0
        self._servers = servers
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._live, name="watcher", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Wait for the commit under way."""
        self._stopping.set()
        self._thread.join(60)

    def _live(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6000,
                **CLIENT,
            }
        )
        consumer.subscribe([ORDERS], on_assign=self._assigned)
        while not self._stopping.is_set():
            self._read(consumer)
        consumer.close()

    def _assigned(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self.rebalances += 1
        self.progress.assigned()

    def _read(self, consumer: Consumer) -> None:
        messages = [message for message in consumer.consume(_BATCH, 0.3) if message.error() is None]
        offsets: dict[int, int] = {}
        for message in messages:
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self.progress.delivered(partition, offset)
            offsets[partition] = offset + 1
        if not offsets:
            return
        try:
            consumer.commit(offsets=[TopicPartition(ORDERS, *each) for each in offsets.items()], asynchronous=False)
        except KafkaException:
            # The next commit has these as well.
            return
        self.progress.committed(offsets)
