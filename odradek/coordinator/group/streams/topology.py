"""The topology of a streams group: the sets of topics that follow from its record, and its form in requests.

Source: ``StreamsTopology`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.protocol.coordinator_records.streams_groups import (
    CopartitionGroup,
    StreamsGroupTopologyValue,
    Subtopology,
    TopicConfig,
    TopicInfo,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.protocol.message_types import streams_group_heartbeat as messages


class StreamsTopology:
    """A topology. ``subtopologies`` are by id, ``subtopology_of`` maps source and repartition source topics to subtopology ids.

    ``required_topics`` also has the changelog topics.
    """

    __slots__ = ("epoch", "required_topics", "subtopologies", "subtopology_of", "value")

    def __init__(self, value: StreamsGroupTopologyValue) -> None:
        self.value: Final = value
        self.epoch: Final = value.epoch
        self.subtopologies: Final[Mapping[str, Subtopology]] = {each.subtopology_id: each for each in value.subtopologies}
        self.subtopology_of: dict[str, str] = {}
        changelogs: set[str] = set()
        for subtopology in self.subtopologies.values():
            self.subtopology_of.update(dict.fromkeys(source_topics(subtopology), subtopology.subtopology_id))
            changelogs.update(topic.name for topic in subtopology.state_changelog_topics)
        self.required_topics: Final = frozenset(self.subtopology_of) | changelogs

    def is_same(self, other: StreamsTopology) -> bool:
        """Return whether both are the same topology, in any order of the subtopologies."""
        return self.epoch == other.epoch and self.subtopologies == other.subtopologies


def source_topics(subtopology: Subtopology) -> list[str]:
    """Return the topics a subtopology reads, repartition topics last."""
    return [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)]


def topology_of(request: messages.Topology) -> StreamsTopology:
    """Return the topology of a request."""
    subtopologies = tuple(
        Subtopology(
            each.subtopology_id,
            tuple(each.source_topics),
            tuple(each.source_topic_regex),
            _topics(each.state_changelog_topics),
            tuple(each.repartition_sink_topics),
            _topics(each.repartition_source_topics),
            tuple(CopartitionGroup(*map(tuple, group)) for group in each.copartition_groups),
        )
        for each in request.subtopologies
    )
    return StreamsTopology(StreamsGroupTopologyValue(request.epoch, subtopologies))


def _topics(topics: Iterable[messages.TopicInfo]) -> tuple[TopicInfo, ...]:
    return tuple(
        TopicInfo(
            topic.name,
            topic.partitions,
            topic.replication_factor,
            tuple(TopicConfig(config.key, config.value) for config in topic.topic_configs),
        )
        for topic in topics
    )
