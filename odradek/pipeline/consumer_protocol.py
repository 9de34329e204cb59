"""The subscription and the assignment of a consumer group's member, as column values; None for bytes of another protocol."""

from functools import lru_cache
from typing import Any

from odradek.protocol.coordinator_records import MalformedMessage, consumer_protocol


# A member mostly sends the same bytes in every generation, and members mostly send the same as each other.
@lru_cache(maxsize=4096)
def subscribed_topics(subscription: bytes) -> list[str] | None:
    """The subscribed topics, in the order given."""
    try:
        return consumer_protocol.subscribed_topics(subscription)
    except MalformedMessage:
        return None


@lru_cache(maxsize=4096)
def assigned_partitions(assignment: bytes) -> list[dict[str, Any]] | None:
    """The assigned topics with their partitions; an empty list for empty bytes."""
    try:
        assigned = consumer_protocol.assigned_partitions(assignment)
    except MalformedMessage:
        return None
    return [{"topic": topic, "partitions": partitions} for topic, partitions in assigned]
