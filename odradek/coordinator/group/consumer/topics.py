"""The topics as groups see them: the port, the hash that tells a group whether its topics have changed, ids and names.

Classic members use names, so their assignments are converted from and to topic ids.

    topic hash   XXH3 of a byte 0 | id, two int64 | name | int32 count of partitions | the partitions
    partition    int32 index | of each rack of its replicas, sorted: int32 length, name
    group hash   XXH3 of the topic hashes, by name; 0 without topics

Numbers are little-endian. A name is UTF-16, little-endian, followed by the number of its units.

Source: ``Utils.computeTopicHash`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003  the type of a compiled named tuple's field
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from uuid import UUID  # noqa: TC003  the type of a compiled named tuple's field

from xxhash import xxh3_64_digest

from odradek.protocol.coordinator_records.consumer_protocol import encode_assignment, version_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_INT: Final = Struct("<i")
_LONG: Final = Struct("<q")
_UNIT: Final = 2


class SubscribedTopic(NamedTuple):
    """A topic, with the racks of each partition's replicas; empty if brokers have no racks."""

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
        """Return the topic of that name."""

    def name_of(self, topic_id: UUID) -> str | None:
        """Return the name of a topic."""

    def names(self) -> Sequence[str]:
        """Return all names, including internal topics."""


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
    """Return the 64-bit XXH3 hash as a Java long: signed."""
    return int.from_bytes(xxh3_64_digest(data), "big", signed=True)


def topic_hash(topic: SubscribedTopic) -> int:
    """Return the hash of one topic. It changes with id, name, number of partitions and racks."""
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
    """Return the hash of a group's topics, from names and topic hashes."""
    ordered = [each for _, each in sorted(hashes)]
    return java_hash(b"".join(map(_LONG.pack, ordered))) if ordered else 0


class TopicHashes:
    """The hashes of topics, kept until the topics change."""

    __slots__ = ("_by_name", "_topics")

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._by_name: dict[str, int] = {}

    def of(self, names: Iterable[str]) -> int:
        """Return the hash of a group that subscribes to ``names``. Missing topics are left out."""
        found = []
        for name in names:
            known = self._by_name.get(name)
            if known is None:
                topic = self._topics.find(name)
                if topic is None:
                    continue
                known = self._by_name[name] = topic_hash(topic)
            found.append((name, known))
        return group_hash(found)

    def forget(self, names: Iterable[str]) -> None:
        """Drop the hashes of changed topics."""
        for name in names:
            self._by_name.pop(name, None)


def encode_assignment_for(topics: Topics, metadata: bytes, partitions: Mapping[UUID, Iterable[int]]) -> bytes:
    """Return the encoded assignment for a member that joined with ``metadata``. Deleted topics are left out."""
    named = ((topics.name_of(topic_id), sorted(indexes)) for topic_id, indexes in partitions.items())
    found = sorted((name, indexes) for name, indexes in named if name is not None)
    return encode_assignment(version_of(metadata), found)


def with_ids(topics: Topics, named: Iterable[tuple[str, Sequence[int]]]) -> dict[UUID, frozenset[int]]:
    """Return the partitions of existing topics, by topic id."""
    found: dict[UUID, frozenset[int]] = {}
    for name, indexes in named:
        topic = topics.find(name)
        if topic is not None and indexes:
            found[topic.topic_id] = found.get(topic.topic_id, frozenset()).union(indexes)
    return found
