"""The applications that simulated members run: their topologies, and the topics that decide the number of their tasks.

word count    repartitions topic a by words, and counts these in a store
mirror        reads a and b, without a store
join          repartitions a by the keys of b, and joins both in a store
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.message_types.streams_group_heartbeat import CopartitionGroup, Subtopology, TopicInfo, Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Subtopology id and partition.
Task = tuple[str, int]
Shape = frozenset[tuple[str, tuple[str, ...]]]


class Application(NamedTuple):
    """An application of one group.

    A subtopology has as many tasks as the largest of its ``counted`` topics has partitions. Its ``sources`` are no repartition
    topics. Both are by subtopology id. An ``internal`` topic has as many partitions as its subtopology has tasks. Subtopologies
    in ``stateful`` have standby tasks.
    """

    name: str
    topology: Topology
    counted: Mapping[str, Sequence[str]]
    sources: Mapping[str, Sequence[str]]
    internal: Mapping[str, str]
    stateful: frozenset[str]

    def __str__(self) -> str:
        return f"{self.name} of epoch {self.topology.epoch}"

    def task_counts(self, partition_count: Callable[[str], int]) -> dict[str, int]:
        """Return the number of tasks by subtopology id."""
        return {subtopology_id: max(map(partition_count, topics)) for subtopology_id, topics in self.counted.items()}

    def tasks(self, partition_count: Callable[[str], int]) -> set[Task]:
        """Return all tasks."""
        return {(each, index) for each, count in self.task_counts(partition_count).items() for index in range(count)}


def shape_of(subtopologies: Sequence[object]) -> Shape:
    """Return the ids and sources of subtopologies, in a request or a record. No two topologies here have the same."""
    return frozenset((each.subtopology_id, tuple(each.source_topics)) for each in subtopologies)  # type: ignore[attr-defined]


def word_count(group_id: str, epoch: int) -> Application:
    """Make a word count."""
    a, words, counts = (f"{group_id}-{name}" for name in ("a", "words", "counts"))
    topology = Topology(
        epoch=epoch,
        subtopologies=[
            Subtopology(subtopology_id="0", source_topics=[a], repartition_sink_topics=[words]),
            Subtopology(
                subtopology_id="1",
                repartition_source_topics=[TopicInfo(name=words)],
                state_changelog_topics=[TopicInfo(name=counts)],
            ),
        ],
    )
    return Application(
        "word count", topology, {"0": [a], "1": [a]}, {"0": [a], "1": []}, {words: "1", counts: "1"}, frozenset({"1"})
    )


def mirror(group_id: str, epoch: int) -> Application:
    """Make a mirror."""
    sources = [f"{group_id}-a", f"{group_id}-b"]
    topology = Topology(epoch=epoch, subtopologies=[Subtopology(subtopology_id="0", source_topics=sources)])
    return Application("mirror", topology, {"0": sources}, {"0": sources}, {}, frozenset())


def join(group_id: str, epoch: int) -> Application:
    """Make a join."""
    a, b, keyed, joined = (f"{group_id}-{name}" for name in ("a", "b", "keyed", "joined"))
    topology = Topology(
        epoch=epoch,
        subtopologies=[
            Subtopology(subtopology_id="0", source_topics=[a], repartition_sink_topics=[keyed]),
            Subtopology(
                subtopology_id="1",
                source_topics=[b],
                repartition_source_topics=[TopicInfo(name=keyed)],
                state_changelog_topics=[TopicInfo(name=joined)],
                copartition_groups=[CopartitionGroup(source_topics=[0], repartition_source_topics=[0])],
            ),
        ],
    )
    return Application("join", topology, {"0": [a], "1": [b]}, {"0": [a], "1": [b]}, {keyed: "1", joined: "1"}, frozenset({"1"}))


APPLICATIONS = (word_count, mirror, join)
