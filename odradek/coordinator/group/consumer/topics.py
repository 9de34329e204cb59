"""What groups know of topics: the port, and the hash by which a group tells whether its topics have changed.

    topic hash   XXH3 of a byte 0 | id, two int64 | name | int32 count of partitions | the partitions
    partition    int32 index | of each rack of its replicas, sorted: int32 length, name
    group hash   XXH3 of the topic hashes, by name; 0 without topics

Numbers are little-endian. A name is UTF-16, little-endian, with the count of its units behind it.

Source: ``Utils.computeTopicHash`` of Apache Kafka 4.3.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from xxhash import xxh3_64_digest

_INT: Final = Struct("<i")
_LONG: Final = Struct("<q")
_UNIT: Final = 2


class SubscribedTopic(NamedTuple):
    """A topic, with the racks of each partition's replicas where brokers have racks, else empty."""

    topic_id: UUID
    name: str
    partition_count: int
    racks: Sequence[Sequence[str]] = ()


class Topics(Protocol):
    """The topics of the cluster, as of its metadata of ``version``."""

    @property
    def version(self) -> int:
        """The offset of the newest metadata record."""

    def find(self, name: str) -> SubscribedTopic | None:
        """The topic of that name."""

    def name_of(self, topic_id: UUID) -> str | None:
        """The name of a topic."""

    def names(self) -> Sequence[str]:
        """All names, those of internal topics included."""


class NoTopics:
    """A cluster without topics."""

    version: int = 0

    def find(self, name: str) -> SubscribedTopic | None:  # noqa: ARG002
        """Find no topic."""
        return None

    def name_of(self, topic_id: UUID) -> str | None:  # noqa: ARG002
        """Find no name."""
        return None

    def names(self) -> Sequence[str]:
        """Return no names."""
        return ()


def _text(text: str) -> bytes:
    raw = text.encode("utf-16-le")
    return raw + _INT.pack(len(raw) // _UNIT)


def java_hash(data: bytes) -> int:
    """XXH3 of 64 bits as a Java long has it: signed."""
    return int.from_bytes(xxh3_64_digest(data), "big", signed=True)


def topic_hash(topic: SubscribedTopic) -> int:
    """The hash of one topic. It changes with id, name, count of partitions and racks."""
    raw = topic.topic_id.bytes
    chunks = [b"\0", raw[7::-1], raw[:7:-1], _text(topic.name), _INT.pack(topic.partition_count)]
    racks = topic.racks
    for index in range(topic.partition_count):
        chunks.append(_INT.pack(index))
        if racks:
            for rack in sorted(racks[index]):
                text = _text(rack)
                chunks += (text[-4:], text)
    return java_hash(b"".join(chunks))


def group_hash(hashes: Iterable[tuple[str, int]]) -> int:
    """The hash of a group's topics, from names and topic hashes."""
    ordered = [each for _, each in sorted(hashes)]
    return java_hash(b"".join(map(_LONG.pack, ordered))) if ordered else 0
