"""The partitions of this broker, found by topic name or id."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, cast

from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from uuid import UUID

    from odradek.broker.replica.fetch_partitions import FetchPartition


# Stays empty: it is shared.
_NONE: Final[dict[int, Partition]] = {}


class Partitions:
    """All partitions that this broker has a replica of, by topic and index.

    ``is_elsewhere`` returns whether the cluster has a partition, given the topic's name, id or id bytes, and the index. A
    partition that the cluster has but this broker does not is on other brokers, or about to be opened here.
    """

    def __init__(self) -> None:
        self.is_elsewhere: Callable[[str | bytes | UUID, int], bool] | None = None
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[UUID, dict[int, Partition]] = {}
        # The same by the id's 16 bytes, as Produce has it. Creating a UUID from them costs as much as the rest of that look-up.
        self._by_id_bytes: dict[bytes, dict[int, Partition]] = {}

    def __len__(self) -> int:
        return sum(len(partitions) for partitions in self._by_name.values())

    def __iter__(self) -> Iterator[Partition]:
        for partitions in tuple(self._by_name.values()):
            yield from tuple(partitions.values())

    def add(self, partition: Partition) -> None:
        """Add a partition. Raises ValueError if it is already here."""
        partitions = self._by_name.setdefault(partition.topic, {})
        if partition.index in partitions:
            raise ValueError(f"{partition.topic}-{partition.index} already exists")
        partitions[partition.index] = partition
        self._by_id[partition.topic_id] = partitions
        self._by_id_bytes[partition.topic_id.bytes] = partitions

    def remove(self, partition: Partition) -> Partition:
        """Forget one partition, and return it. The topic may have other partitions, here or elsewhere."""
        partitions = self._by_name[partition.topic]
        if len(partitions) == 1:
            self._forget(partition.topic)
        else:
            del partitions[partition.index]
        return partition

    def remove_topic(self, topic: str) -> list[Partition]:
        """Forget a topic, and return the partitions it had."""
        return list(self._forget(topic).values())

    def _forget(self, topic: str) -> dict[int, Partition]:
        partitions = self._by_name.pop(topic, {})
        for topic_id in {partition.topic_id for partition in partitions.values()}:
            del self._by_id[topic_id], self._by_id_bytes[topic_id.bytes]
        return partitions

    def of_topic(self, topic: str) -> dict[int, Partition]:
        """Return a topic's partitions by index; empty if there is no such topic."""
        return self._by_name.get(topic, _NONE)

    def named(self, topic: str | bytes) -> dict[int, Partition]:
        """Return the partitions of a topic as a Produce request names it: by the bytes of its id, or by its name."""
        # Names need a look-up of their own: a compiled dictionary keyed by bytes refuses a str.
        return self._by_id_bytes.get(topic, _NONE) if isinstance(topic, bytes) else self._by_name.get(topic, _NONE)

    def get(self, topic: str, index: int) -> Partition | None:
        """Return one partition, or None."""
        return self._by_name.get(topic, _NONE).get(index)

    def serves(self, topic: str, index: int) -> bool:
        """Return whether a partition is here, and its log is open."""
        found = self.get(topic, index)
        return found is not None and found.log is not None

    def find_by_id(self, topic_id: "UUID", index: int) -> Partition | KafkaError:
        """Return the partition of a topic id, or the error to answer if it is not here."""
        found = self._by_id.get(topic_id, _NONE).get(index)
        return self.missing(topic_id, index) if found is None else found

    def find_fetched(self, asked: "FetchPartition") -> Partition | KafkaError:
        """Return the partition that a fetch names by topic id or name, or the error to answer if it is not here."""
        key = asked.topic_key
        partitions = self._by_name.get(key) if isinstance(key, str) else self._by_id.get(cast("UUID", key))
        found = None if partitions is None else partitions.get(asked.partition)
        if found is None:
            return self._missing_fetched(asked, partitions or _NONE)
        asked.topic_name = found.topic
        return found

    def _missing_fetched(self, asked: "FetchPartition", others: dict[int, Partition]) -> KafkaError:
        """Return the error of ``missing`` for a fetch. ``others`` are the topic's partitions on this broker.

        A topic id keeps standing for the topic name it had at an earlier fetch. So a deleted topic is unknown by that name, and
        if a new topic has the name, the id is inconsistent.
        """
        for partition in others.values():
            asked.topic_name = partition.topic
            break
        error = self.missing(asked.topic_key, asked.partition)
        name = asked.topic_name
        if name is None or error.code != ErrorCode.UNKNOWN_TOPIC_ID:
            return error
        if asked.partition in self.of_topic(name):
            return KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID, f"{name} was created again and has a new id")
        return self.missing(name, asked.partition)

    def missing(self, topic: "str | bytes | UUID | None", index: int) -> KafkaError:
        """Return the error for a partition that is not here. A null topic id is None."""
        if topic is not None and self.is_elsewhere is not None and self.is_elsewhere(topic, index):
            return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker has no replica of the partition")
        if isinstance(topic, str) or (topic in self._by_id_bytes if isinstance(topic, bytes) else topic in self._by_id):
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "this broker has no such partition")
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")

    def require(self, topic: str, index: int) -> Partition:
        """Return one partition. KafkaError: as ``missing``; NOT_LEADER_OR_FOLLOWER if other brokers have it."""
        partition = self.get(topic, index)
        if partition is None:
            raise self.missing(topic, index)
        return partition
