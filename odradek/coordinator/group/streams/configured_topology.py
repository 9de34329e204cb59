"""A topology with the numbers of partitions that the cluster's topics give it.

Source: ``ConfiguredTopology`` and ``TopologyMetadata`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003  the types of a compiled named tuple's fields
from enum import IntEnum
from typing import NamedTuple


class Status(IntEnum):
    """The status codes of a StreamsGroupHeartbeat."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


class TopicConfigurationError(Exception):
    """The topology cannot be configured with the topics there are. Kafka's class is TopicConfigurationException."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class ConfiguredInternalTopic(NamedTuple):
    """A repartition or changelog topic. ``replication_factor`` is 0 for the broker's default."""

    name: str
    partition_count: int
    replication_factor: int
    configs: Sequence[tuple[str, str]]


class ConfiguredSubtopology(NamedTuple):
    """A subtopology with the number of its tasks. Lists are sorted by name."""

    task_count: int
    source_topics: Sequence[str]
    repartition_sink_topics: Sequence[str]
    repartition_source_topics: Sequence[ConfiguredInternalTopic]
    state_changelog_topics: Sequence[ConfiguredInternalTopic]


class ConfiguredTopology(NamedTuple):
    """A topology of ``epoch``, for topics whose metadata has ``metadata_hash``.

    ``problem`` is why no task can be assigned, or None. ``configured`` has the subtopologies by id; it is None if a source topic
    is missing, or the topics do not fit together. ``missing`` are the internal topics to create.
    """

    epoch: int
    metadata_hash: int
    configured: Mapping[str, ConfiguredSubtopology] | None
    missing: Sequence[ConfiguredInternalTopic]
    problem: tuple[Status, str] | None

    @property
    def is_ready(self) -> bool:
        """Return whether tasks can be assigned."""
        return self.problem is None

    # --------------------------------------------------------------------------- part of streams_interface.TopologyDescriber

    def subtopologies(self) -> Sequence[str]:
        """Return the ids of the subtopologies."""
        return sorted(self.configured or ())

    def max_num_input_partitions(self, subtopology_id: str) -> int:
        """Return the number of tasks of a subtopology."""
        return (self.configured or {})[subtopology_id].task_count

    def is_stateful(self, subtopology_id: str) -> bool:
        """Return whether a subtopology has changelog topics."""
        return bool((self.configured or {})[subtopology_id].state_changelog_topics)
