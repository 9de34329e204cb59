"""What members of a group tell each other where its protocol is that of consumers: topics subscribed to, partitions assigned.

    subscription    int16 version | array of string topics | ...
    assignment      int16 version | array of (string topic, array of int32 partitions) | ...

Arrays and strings have sizes of four and two bytes. The rest (user data, partitions owned before) is left out.

Source: clients/src/main/resources/common/message/ConsumerProtocol{Subscription,Assignment}.json of Apache Kafka.
"""

from functools import lru_cache
from typing import Any

from odradek.protocol.coordinator_records import MalformedMessage
from odradek.protocol.coordinator_records.fields import read_int16, read_int32, read_nullable_string, required

CONSUMER = "consumer"
"""The protocol type of such a group."""


# The members of a group say the same in every generation, and mostly the same as each other.
@lru_cache(maxsize=4096)
def subscribed_topics(subscription: bytes) -> list[str] | None:
    """None where it is something else."""
    try:
        _, position = read_int16(subscription, 0)
        count, position = read_int32(subscription, position)
        topics = []
        for _ in range(count):
            topic, position = read_nullable_string(subscription, position)
            topics.append(required(topic))
    except MalformedMessage:
        return None
    return topics


@lru_cache(maxsize=4096)
def assigned_partitions(assignment: bytes) -> list[dict[str, Any]] | None:
    """Topics with their partitions; no bytes at all are none. None where it is something else."""
    if not assignment:
        return []
    try:
        _, position = read_int16(assignment, 0)
        count, position = read_int32(assignment, position)
        assigned = []
        for _ in range(count):
            topic, position = read_nullable_string(assignment, position)
            size, position = read_int32(assignment, position)
            partitions = []
            for _ in range(size):
                partition, position = read_int32(assignment, position)
                partitions.append(partition)
            assigned.append({"topic": required(topic), "partitions": partitions})
    except MalformedMessage:
        return None
    return assigned
