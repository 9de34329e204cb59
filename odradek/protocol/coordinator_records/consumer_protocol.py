"""The embedded protocol of consumer groups: the topics that a member subscribes to, the partitions that it is assigned.

    subscription    int16 version | array of string topics | ...
    assignment      int16 version | array of (string topic, array of int32 partitions) | ...

Arrays and strings have sizes of four and two bytes. Every version begins like this. The rest (user data, partitions owned
before, rack) concerns the clients only.

Source: clients/src/main/resources/common/message/ConsumerProtocol{Subscription,Assignment}.json of Apache Kafka.
"""

from odradek.protocol.coordinator_records.fields import read_int16, read_int32, read_nullable_string, required
from odradek.protocol.errors import MalformedMessage

CONSUMER_PROTOCOL_TYPE = "consumer"
"""The protocol type of such a group."""


def subscribed_topics(subscription: bytes) -> list[str]:
    """The topics, including duplicates. Raises MalformedMessage for other bytes."""
    count, position = _read_head(subscription)
    topics = []
    for _ in range(count):
        topic, position = read_nullable_string(subscription, position)
        topics.append(required(topic))
    return topics


def assigned_partitions(assignment: bytes) -> list[tuple[str, list[int]]]:
    """Topics with their partitions; an empty list for empty bytes. Raises MalformedMessage for other bytes."""
    if not assignment:
        return []
    count, position = _read_head(assignment)
    assigned = []
    for _ in range(count):
        topic, position = read_nullable_string(assignment, position)
        size, position = _read_count(assignment, position)
        partitions = []
        for _ in range(size):
            partition, position = read_int32(assignment, position)
            partitions.append(partition)
        assigned.append((required(topic), partitions))
    return assigned


def _read_head(data: bytes) -> tuple[int, int]:
    version, position = read_int16(data, 0)
    if version < 0:
        raise MalformedMessage(f"version {version} of what consumers tell each other")
    return _read_count(data, position)


def _read_count(data: bytes, position: int) -> tuple[int, int]:
    count, position = read_int32(data, position)
    if count < 0:
        raise MalformedMessage(f"an array of {count}")
    return count, position
