"""The embedded protocol of consumer groups: a member's subscription to topics, and its assigned partitions.

    subscription    int16 version | array of string topics | nullable bytes user data
                    since 1: array of (string topic, array of int32 partitions) owned
                    since 2: int32 generation | since 3: nullable string rack
    assignment      int16 version | array of (string topic, array of int32 partitions) | nullable bytes user data

Arrays and strings have sizes of four and two bytes. Versions newer than 3 begin in the same way.

Source: clients/src/main/resources/common/message/ConsumerProtocol{Subscription,Assignment}.json of Apache Kafka.
"""

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from odradek.protocol.coordinator_records.fields import read_int16, read_int32, read_nullable_string, required, take
from odradek.protocol.errors import MalformedMessage

CONSUMER_PROTOCOL_TYPE = "consumer"
"""The protocol type of such a group."""

NEWEST_VERSION = 3

_FIRST_WITH_OWNED = 1
_FIRST_WITH_GENERATION = 2
_FIRST_WITH_RACK = 3
_INT16 = Struct(">h")
_INT32 = Struct(">i")


class Subscription(NamedTuple):
    """A joining member's metadata. ``owned`` has the partitions that it owns, empty before version 1."""

    version: int
    topics: list[str]
    user_data: bytes
    owned: list[tuple[str, list[int]]]
    rack_id: str | None


def read_subscription(subscription: bytes) -> Subscription:
    """Read a whole subscription. Raises MalformedMessage for other bytes."""
    version, _ = read_int16(subscription, 0)
    topics, position = _read_topics(subscription)
    user_data, position = _read_user_data(subscription, position)
    owned: list[tuple[str, list[int]]] = []
    rack_id = None
    if version >= _FIRST_WITH_OWNED:
        owned, position = _read_partitions(subscription, *_read_count(subscription, position))
    if version >= _FIRST_WITH_GENERATION:
        _, position = read_int32(subscription, position)
    if version >= _FIRST_WITH_RACK:
        rack_id, position = read_nullable_string(subscription, position)
    return Subscription(version, topics, user_data, owned, rack_id)


def version_of(subscription: bytes) -> int:
    """Return the version of a subscription; 0 for bytes without one."""
    return max(0, read_int16(subscription, 0)[0]) if len(subscription) >= _INT16.size else 0


def encode_subscription(topics: Iterable[str]) -> bytes:
    """Return the subscription of a member that owns nothing yet, in version 0."""
    names = [topic.encode() for topic in topics]
    chunks = [_INT16.pack(0), _INT32.pack(len(names))]
    for name in names:
        chunks += (_INT16.pack(len(name)), name)
    chunks.append(_INT32.pack(-1))
    return b"".join(chunks)


def encode_assignment(version: int, assigned: Iterable[tuple[str, Iterable[int]]]) -> bytes:
    """Encode an assignment without user data, in ``version`` or in the newest known version."""
    topics = [(topic.encode(), list(partitions)) for topic, partitions in assigned]
    chunks = [_INT16.pack(min(version, NEWEST_VERSION)), _INT32.pack(len(topics))]
    for topic, partitions in topics:
        chunks += (_INT16.pack(len(topic)), topic, _INT32.pack(len(partitions)), *map(_INT32.pack, partitions))
    chunks.append(_INT32.pack(-1))
    return b"".join(chunks)


def subscribed_topics(subscription: bytes) -> list[str]:
    """Return the topics, including duplicates. Raises MalformedMessage for other bytes."""
    return _read_topics(subscription)[0]


def assigned_partitions(assignment: bytes) -> list[tuple[str, list[int]]]:
    """Return topics with their partitions; an empty list for empty bytes. Raises MalformedMessage for other bytes."""
    return _read_partitions(assignment, *_read_head(assignment))[0] if assignment else []


def assigned_user_data(assignment: bytes) -> bytes:
    """Return the assignor's user data for the member. Raises MalformedMessage for other bytes."""
    if not assignment:
        return b""
    _, position = _read_partitions(assignment, *_read_head(assignment))
    return _read_user_data(assignment, position)[0]


def _read_topics(subscription: bytes) -> tuple[list[str], int]:
    count, position = _read_head(subscription)
    topics = []
    for _ in range(count):
        topic, position = read_nullable_string(subscription, position)
        topics.append(required(topic))
    return topics, position


def _read_partitions(data: bytes, count: int, position: int) -> tuple[list[tuple[str, list[int]]], int]:
    assigned = []
    for _ in range(count):
        topic, position = read_nullable_string(data, position)
        size, position = _read_count(data, position)
        partitions = []
        for _ in range(size):
            partition, position = read_int32(data, position)
            partitions.append(partition)
        assigned.append((required(topic), partitions))
    return assigned, position


def _read_user_data(data: bytes, position: int) -> tuple[bytes, int]:
    size, position = read_int32(data, position)
    return (b"", position) if size == -1 else take(data, position, size)


def _read_head(data: bytes) -> tuple[int, int]:
    version, position = read_int16(data, 0)
    if version < 0:
        raise MalformedMessage(f"version {version} of the consumer protocol is unknown")
    return _read_count(data, position)


def _read_count(data: bytes, position: int) -> tuple[int, int]:
    count, position = read_int32(data, position)
    if count < 0:
        raise MalformedMessage(f"an array of {count}")
    return count, position
