"""The partitions that this broker leads, found by topic name or id."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from uuid import UUID

    from odradek.broker.replica.fetch_sessions import FetchPartition


class Partitions:
    """All partitions of this broker. Indexes within a topic count from 0 without gaps."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[Partition]] = {}
        self._by_id: dict[UUID, list[Partition]] = {}
        # The same by the id's 16 bytes, as Produce has it: making a UUID of them costs as much as the rest of that look-up.
        self._by_id_bytes: dict[bytes, list[Partition]] = {}

    def __len__(self) -> int:
        return sum(len(partitions) for partitions in self._by_name.values())

    def __iter__(self) -> Iterator[Partition]:
        for partitions in tuple(self._by_name.values()):
            yield from partitions

    def add(self, partition: Partition) -> None:
        """Take in a partition, the next index of its topic."""
        partitions = self._by_name.setdefault(partition.topic, [])
        if partition.index != len(partitions):
            raise ValueError(f"{partition.topic}-{partition.index} comes out of order")
        partitions.append(partition)
        self._by_id[partition.topic_id] = partitions
        self._by_id_bytes[partition.topic_id.bytes] = partitions

    def remove_topic(self, topic: str) -> list[Partition]:
        """Forget a topic; returns the partitions it had."""
        partitions = self._by_name.pop(topic, [])
        if partitions:
            topic_id = partitions[0].topic_id
            del self._by_id[topic_id], self._by_id_bytes[topic_id.bytes]
        return partitions

    def of_topic(self, topic: str) -> list[Partition]:
        """A topic's partitions by index; empty where there is no such topic."""
        return self._by_name.get(topic, [])

    def of_topic_id(self, topic_id: bytes) -> list[Partition]:
        """The same by the 16 bytes of a topic id."""
        return self._by_id_bytes.get(topic_id, [])

    def get(self, topic: str, index: int) -> Partition | None:
        """One partition, or None."""
        partitions = self._by_name.get(topic)
        if partitions is None or not 0 <= index < len(partitions):
            return None
        return partitions[index]

    def find_fetched(self, asked: "FetchPartition") -> Partition | KafkaError:
        """What a fetch names, by topic id or name; the error that answers it where there is none."""
        key = asked.topic_key
        partitions = self._by_name.get(key) if isinstance(key, str) else self._by_id.get(cast("UUID", key))
        if partitions is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if isinstance(key, str) else ErrorCode.UNKNOWN_TOPIC_ID)
        if not 0 <= asked.partition < len(partitions):
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return partitions[asked.partition]

    def require(self, topic: str, index: int) -> Partition:
        """One partition, or UNKNOWN_TOPIC_OR_PARTITION."""
        partition = self.get(topic, index)
        if partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no {topic}-{index}")
        return partition
