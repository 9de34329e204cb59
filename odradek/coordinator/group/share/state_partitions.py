"""The share partitions of a group by the life of their state: initializing, initialized, deleting.

Values and pure functions. Each change makes a new value of the one record that has all three sets. A topic may be in two of them:
it has initialized partitions and new ones, for example.

Source: ``ShareGroupStatePartitionMetadataInfo`` and ``GroupMetadataManager`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  the type of a compiled named tuple's field
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID  # noqa: TC003  the type of a compiled named tuple's field

from odradek.protocol.coordinator_records.share_groups import (
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from odradek.coordinator.group.consumer.member import Partitions
    from odradek.coordinator.group.consumer.topics import Topics

# Stands for the name of a topic that does not exist any more, as in Kafka.
UNKNOWN_TOPIC: Final = "<UNKNOWN>"
# The start offset of a partition whose leader is to choose it by ``share.auto.offset.reset``.
UNINITIALIZED_START_OFFSET: Final = -1


class NamedPartitions(NamedTuple):
    """Partitions of a topic, with its name as of the record."""

    name: str
    partitions: frozenset[int]


class StatePartitions(NamedTuple):
    """The three sets, by topic id. ``noted_ms`` is the wall time at which the record was replayed."""

    initializing: Mapping[UUID, NamedPartitions] = {}
    initialized: Mapping[UUID, NamedPartitions] = {}
    deleting: frozenset[UUID] = frozenset()
    noted_ms: int = 0

    def known(self) -> frozenset[UUID]:
        """Return the topics with initializing or initialized partitions."""
        return frozenset(self.initializing) | frozenset(self.initialized)

    def assignable(self) -> dict[UUID, frozenset[int]]:
        """Return the initialized partitions."""
        return {topic_id: partitions for topic_id, (_, partitions) in self.initialized.items()}


class SharePartitionStates(NamedTuple):
    """The states of share partitions to initialize: a state epoch, and a start offset by topic id and partition."""

    state_epoch: int
    start_offsets: Mapping[UUID, Mapping[int, int]]

    def partitions(self) -> dict[UUID, frozenset[int]]:
        """Return the partitions by topic id."""
        return {topic_id: frozenset(offsets) for topic_id, offsets in self.start_offsets.items()}


def from_record(value: ShareGroupStatePartitionMetadataValue, now_ms: int) -> StatePartitions:
    """Return the sets of a record that is replayed at ``now_ms``."""
    return StatePartitions(
        _by_id(value.initializing_topics),
        _by_id(value.initialized_topics),
        frozenset(topic_id for topic_id, _ in value.deleting_topics),
        now_ms,
    )


def _by_id(topics: Iterable[TopicPartitionsInfo]) -> dict[UUID, NamedPartitions]:
    return {topic_id: NamedPartitions(name, frozenset(partitions)) for topic_id, name, partitions in topics}


def to_record(sets: StatePartitions, topics: Topics) -> ShareGroupStatePartitionMetadataValue:
    """Return the record of the sets. Topics being deleted get their names as of now."""
    return ShareGroupStatePartitionMetadataValue(
        _infos(sets.initializing),
        _infos(sets.initialized),
        tuple(TopicInfo(topic_id, topics.name_of(topic_id) or UNKNOWN_TOPIC) for topic_id in sorted(sets.deleting)),
    )


def _infos(named: Mapping[UUID, NamedPartitions]) -> tuple[TopicPartitionsInfo, ...]:
    return tuple(
        TopicPartitionsInfo(topic_id, named[topic_id].name, tuple(sorted(named[topic_id].partitions)))
        for topic_id in sorted(named)
    )


def uninitialized(
    sets: StatePartitions, names: Iterable[str], topics: Topics, now_ms: int, retry_interval_ms: int
) -> dict[UUID, NamedPartitions]:
    """Return the partitions of the named topics that are neither initialized nor being initialized.

    An initialization that was asked for ``retry_interval_ms`` ago, or earlier, counts as lost.
    """
    waits = now_ms - sets.noted_ms < retry_interval_ms
    found = {}
    for name in names:
        topic = topics.find(name)
        if topic is None or len(_partitions(sets.initialized, topic.topic_id)) >= topic.partition_count:
            continue
        missing = set(range(topic.partition_count)) - _partitions(sets.initialized, topic.topic_id)
        if waits:
            missing -= _partitions(sets.initializing, topic.topic_id)
        if missing:
            found[topic.topic_id] = NamedPartitions(name, frozenset(missing))
    return found


def _partitions(named: Mapping[UUID, NamedPartitions], topic_id: UUID) -> frozenset[int]:
    known = named.get(topic_id)
    return frozenset() if known is None else known.partitions


def first_offsets(sets: StatePartitions, asked: Mapping[UUID, NamedPartitions], epoch: int) -> SharePartitionStates:
    """Return the states to initialize. A partition that a known topic has grown by begins at 0, so that no record is missed."""
    known = sets.known()
    return SharePartitionStates(
        epoch,
        {
            topic_id: dict.fromkeys(sorted(partitions), 0 if topic_id in known else UNINITIALIZED_START_OFFSET)
            for topic_id, (_, partitions) in asked.items()
        },
    )


def with_initializing(sets: StatePartitions, asked: Mapping[UUID, NamedPartitions]) -> StatePartitions:
    """Add initializing partitions. Their topics are no longer being deleted."""
    return sets._replace(initializing=_joined(sets.initializing, asked), deleting=sets.deleting.difference(asked))


def with_initialized(sets: StatePartitions, done: Partitions, topics: Topics) -> StatePartitions:
    """Note that the share coordinator has the state of these partitions."""
    named = {
        topic_id: NamedPartitions(topics.name_of(topic_id) or UNKNOWN_TOPIC, partitions) for topic_id, partitions in done.items()
    }
    return sets._replace(
        initializing=_without(sets.initializing, done),
        initialized=_joined(sets.initialized, named),
    )


def without_initializing(sets: StatePartitions, failed: Partitions) -> StatePartitions:
    """Note that these partitions could not be initialized. A later heartbeat asks again."""
    return sets._replace(initializing=_without(sets.initializing, failed))


def without_topics(sets: StatePartitions, topic_ids: AbstractSet[UUID]) -> StatePartitions:
    """Drop deleted topics. The share coordinator drops their state by itself."""
    return sets._replace(
        initializing={topic_id: each for topic_id, each in sets.initializing.items() if topic_id not in topic_ids},
        initialized={topic_id: each for topic_id, each in sets.initialized.items() if topic_id not in topic_ids},
        deleting=sets.deleting - topic_ids,
    )


def _joined(first: Mapping[UUID, NamedPartitions], second: Mapping[UUID, NamedPartitions]) -> dict[UUID, NamedPartitions]:
    """Return the union. A topic in both has the name of ``second``."""
    joined = dict(first)
    for topic_id, (name, partitions) in second.items():
        joined[topic_id] = NamedPartitions(name, _partitions(first, topic_id) | partitions)
    return joined


def _without(named: Mapping[UUID, NamedPartitions], partitions: Partitions) -> dict[UUID, NamedPartitions]:
    left = {}
    for topic_id, (name, known) in named.items():
        rest = known.difference(partitions.get(topic_id, ()))
        if rest:
            left[topic_id] = NamedPartitions(name, rest)
    return left
