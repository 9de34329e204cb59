"""The number of partitions of each internal topic of a topology, and the internal topics that are missing. Pure.

A number is decided in this order:

    1. a repartition topic has the number it asks for, or else the largest number of the source topics of a subtopology that
       writes to it
    2. the topics of a copartition group have the same number: that of its source topics. Without source topics it is the number
       that repartition topics ask for, or else their largest
    3. a changelog topic has the number of tasks of its subtopology: the largest number of its source topics

An existing topic keeps its number, and must have the decided one if it is an internal topic of this topology.

Source: ``InternalTopicManager``, ``RepartitionTopics``, ``CopartitionedTopicsEnforcer`` and ``ChangelogTopics`` of Apache
Kafka 4.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.coordinator.group.streams.configured_topology import (
    ConfiguredInternalTopic,
    ConfiguredSubtopology,
    ConfiguredTopology,
    Status,
    TopicConfigurationError,
)
from odradek.coordinator.group.streams.topology import source_topics
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from odradek.coordinator.group.streams.topology import StreamsTopology
    from odradek.protocol.coordinator_records.streams_groups import Subtopology, TopicInfo

_MOST_NAMED: Final = 3
# A chain of repartition topics takes a round for each topic that is named before the one it is made from.
_MOST_ROUNDS: Final = 50


def configure_topics(
    topology: StreamsTopology, metadata_hash: int, partition_count: Callable[[str], int | None]
) -> ConfiguredTopology:
    """Return the configured topology. ``partition_count`` returns the partitions of an existing topic, None for a missing one.

    KafkaError: STREAMS_INVALID_TOPOLOGY for a topology that fits no topics.
    """
    try:
        _check_sources(topology, partition_count)
        counts = _Counts(topology, partition_count)
        configured = {
            subtopology_id: _configured(topology.subtopologies[subtopology_id], counts)
            for subtopology_id in sorted(topology.subtopologies)
        }
        missing = _missing(topology, configured, partition_count)
    except TopicConfigurationError as error:
        return ConfiguredTopology(topology.epoch, metadata_hash, None, (), (error.status, error.reason))
    problem = None
    if missing:
        named = _summary([topic.name for topic in missing])
        problem = (Status.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {named}")
    return ConfiguredTopology(topology.epoch, metadata_hash, configured, missing, problem)


def _check_sources(topology: StreamsTopology, partition_count: Callable[[str], int | None]) -> None:
    names = {name for each in topology.subtopologies.values() for name in each.source_topics}
    missing = sorted(name for name in names if partition_count(name) is None)
    if missing:
        raise TopicConfigurationError(Status.MISSING_SOURCE_TOPICS, f"Source topics {_summary(missing)} are missing.")


def _summary(names: Collection[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _MOST_NAMED} additional topics" if len(listed) > _MOST_NAMED else ""
    return ", ".join(listed[:_MOST_NAMED]) + more


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, reason)


class _Counts:
    """The number of partitions of each topic: that of the cluster, or else the decided one."""

    __slots__ = ("_existing", "_topology", "decided")

    def __init__(self, topology: StreamsTopology, partition_count: Callable[[str], int | None]) -> None:
        self._topology = topology
        self._existing = partition_count
        self.decided: dict[str, int] = {}
        self.decided.update(self._of_repartition_topics())
        self._copartition()
        self.decided.update(self._of_changelogs())

    def of(self, topic: str) -> int:
        """Return the number of partitions of a source topic."""
        found = self._existing(topic)
        if found is None:
            found = self.decided.get(topic)
        if found is None:
            raise _invalid(f"no subtopology writes to {topic}, so its number of partitions is unknown")
        return found

    def _subtopologies(self) -> Iterable[Subtopology]:
        return self._topology.subtopologies.values()

    def _of_repartition_topics(self) -> dict[str, int]:
        counts = {
            topic.name: topic.partitions
            for each in self._subtopologies()
            for topic in each.repartition_source_topics
            if topic.partitions
        }
        is_any_open = True
        rounds = 0
        while is_any_open:
            rounds += 1
            is_any_open = has_progress = False
            for subtopology in self._subtopologies():
                for sink in subtopology.repartition_sink_topics:
                    if sink in counts:
                        continue
                    found = self._largest_source(subtopology, counts)
                    if found is None:
                        is_any_open = True
                    else:
                        counts[sink] = found
                        has_progress = True
            if is_any_open and (not has_progress or rounds == _MOST_ROUNDS):
                raise _invalid(
                    "Failed to compute number of partitions for all repartition topics. There may be loops in the topology that "
                    "cannot be resolved."
                )
        if any(topic.name not in counts for each in self._subtopologies() for topic in each.repartition_source_topics):
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics, because a repartition source topic is never "
                "used as a sink topic."
            )
        return counts

    def _largest_source(self, subtopology: Subtopology, counts: Mapping[str, int]) -> int | None:
        """Return the largest number of its source topics that is known so far."""
        repartitioned = [counts[topic.name] for topic in subtopology.repartition_source_topics if topic.name in counts]
        sources = [count for name in subtopology.source_topics if (count := self._existing(name)) is not None]
        return max([*repartitioned, *sources], default=None)

    def _copartition(self) -> None:
        topics = [topic for each in self._subtopologies() for topic in each.repartition_source_topics]
        fixed = {topic.name for topic in topics if topic.partitions}
        flexible = {topic.name for topic in topics if not topic.partitions}
        for subtopology in self._subtopologies():
            for group in subtopology.copartition_groups:
                repartitioned = [topic.name for topic in subtopology.repartition_source_topics]
                names = _at(subtopology.source_topics, group.source_topics) | _at(repartitioned, group.repartition_source_topics)
                if names:
                    self._enforce(names, fixed, flexible)

    def _enforce(self, names: set[str], fixed: set[str], flexible: set[str]) -> None:
        """Give the repartition topics of one copartition group the same number as the others."""
        repartitioned = {name: self.of(name) for name in sorted(names & (fixed | flexible))}
        others = {name: self.of(name) for name in sorted(names - fixed - flexible)}
        if others:
            count = _same(others, others)
        elif fixed:
            count = _same(repartitioned, {name: self.of(name) for name in sorted(fixed)})
        else:
            count = max(repartitioned.values())
        for name, own in repartitioned.items():
            if name in fixed and own != count:
                raise TopicConfigurationError(
                    Status.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Number of partitions [{own}] of repartition topic [{name}] doesn't match number of partitions [{count}] of "
                    "the source topic.",
                )
            self.decided[name] = count

    def _of_changelogs(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for subtopology in self._subtopologies():
            count = self.tasks_of(subtopology)
            found.update((topic.name, count) for topic in subtopology.state_changelog_topics)
        return found

    def tasks_of(self, subtopology: Subtopology) -> int:
        """Return the number of tasks of a subtopology."""
        count = max(map(self.of, source_topics(subtopology)), default=None)
        if count is None:
            raise _invalid(f"No source topics found for subtopology {subtopology.subtopology_id}")
        return count


def _at(names: Sequence[str], places: Collection[int]) -> set[str]:
    if any(place not in range(len(names)) for place in places):
        raise _invalid("A copartition group names a topic that its subtopology does not have.")
    return {names[place] for place in places}


def _same(named: Mapping[str, int], counts: Mapping[str, int]) -> int:
    """Return the one number of ``counts``. The error names the topics of ``named``."""
    if len(set(counts.values())) > 1:
        topics = ", ".join(f"{name}={count}" for name, count in sorted(named.items()))
        reason = f"Following topics do not have the same number of partitions: [{{{topics}}}]"
        raise TopicConfigurationError(Status.INCORRECTLY_PARTITIONED_TOPICS, reason)
    return next(iter(counts.values()))


def _configured(subtopology: Subtopology, counts: _Counts) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        counts.tasks_of(subtopology),
        sorted(subtopology.source_topics),
        sorted(subtopology.repartition_sink_topics),
        _internal(subtopology.repartition_source_topics, counts),
        _internal(subtopology.state_changelog_topics, counts),
    )


def _internal(topics: Iterable[TopicInfo], counts: _Counts) -> list[ConfiguredInternalTopic]:
    return [
        ConfiguredInternalTopic(
            topic.name,
            topic.partitions or counts.decided[topic.name],
            topic.replication_factor,
            tuple((config.key, config.value) for config in topic.topic_configs),
        )
        for topic in sorted(topics, key=lambda topic: topic.name)
    ]


def _missing(
    topology: StreamsTopology,
    configured: Mapping[str, ConfiguredSubtopology],
    partition_count: Callable[[str], int | None],
) -> list[ConfiguredInternalTopic]:
    """Return the internal topics that do not exist, by name."""
    wanted = {
        topic.name: topic
        for each in configured.values()
        for topic in (*each.repartition_source_topics, *each.state_changelog_topics)
    }
    for name in sorted(topology.required_topics):
        found = partition_count(name)
        expected = None if found is None else wanted.pop(name, None)
        if expected is not None and found != expected.partition_count:
            raise TopicConfigurationError(
                Status.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected {expected.partition_count}, found {found}",
            )
    return [wanted[name] for name in sorted(wanted)]
