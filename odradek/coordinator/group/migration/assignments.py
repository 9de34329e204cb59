"""Converts assignments between topic ids and the names that classic members use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.coordinator_records.consumer_protocol import encode_assignment, version_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from odradek.coordinator.group.consumer.topics import Topics


def told_assignment(topics: Topics, metadata: bytes, partitions: Mapping[UUID, Iterable[int]]) -> bytes:
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
