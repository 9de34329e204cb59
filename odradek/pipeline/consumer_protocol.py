"""What the members of consumers' groups subscribe to and are assigned, as columns have it; None where it is something else."""

from functools import lru_cache
from typing import Any

from odradek.protocol.coordinator_records import MalformedMessage, consumer_protocol


# The members of a group say the same in every generation, and mostly the same as each other.
@lru_cache(maxsize=4096)
def subscribed_topics(subscription: bytes) -> list[str] | None:
    """The topics, in their order."""
    try:
        return consumer_protocol.subscribed_topics(subscription)
    except MalformedMessage:
        return None


@lru_cache(maxsize=4096)
def assigned_partitions(assignment: bytes) -> list[dict[str, Any]] | None:
    """Topics with their partitions; no bytes at all are none."""
    try:
        assigned = consumer_protocol.assigned_partitions(assignment)
    except MalformedMessage:
        return None
    return [{"topic": topic, "partitions": partitions} for topic, partitions in assigned]
