"""Apache Kafka's task assignor, in a JVM of its own (``TaskAssignors.java``): streams groups in, a line each, assignments out.

    group            order standbys subtopologies members
    subtopologies    id:partitions:stateful|stateless, separated by commas; - for none
    members          id:process id:active tasks:standby tasks:offsets, separated by commas; - for none
    tasks            subtopology id=partition+partition, separated by dots
    offsets          subtopology id=partition@offset+partition@offset, separated by dots
    assignment       id:active tasks:standby tasks, separated by commas; ! and a text for an exception

Ids are in base64, without padding.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from odradek.coordinator.group.assignor.spec import text_order
from odradek.coordinator.group.assignor.streams_interface import MemberTasks, StreamsGroupAssignment, StreamsGroupSpec, Tasks
from tests.campaigns.kafka_tools.java_program import answered_lines

SOURCE = Path(__file__).with_name("TaskAssignors.java")


class Subtopology(NamedTuple):
    """A subtopology: how many tasks it has, and whether they have state."""

    partition_count: int
    is_stateful: bool


class Topology(NamedTuple):
    """A ``TopologyDescriber`` of subtopologies by id."""

    by_id: Mapping[str, Subtopology]

    def subtopologies(self) -> list[str]:
        """Their ids."""
        return list(self.by_id)

    def max_num_input_partitions(self, subtopology_id: str) -> int:
        """Return the number of a subtopology's tasks."""
        return self.by_id[subtopology_id].partition_count

    def is_stateful(self, subtopology_id: str) -> bool:
        """Return whether a subtopology has state."""
        return self.by_id[subtopology_id].is_stateful


class Question(NamedTuple):
    """A group, and whether Kafka has its members in a hash table, or sorted by id."""

    group: StreamsGroupSpec
    topology: Topology
    is_hashed: bool


def kafkas_answers(questions: Iterable[Question], scratch: Path) -> list[StreamsGroupAssignment | str]:
    """Return Kafka's assignment, or the text of its exception."""
    return [_assignment(line) for line in answered_lines(SOURCE, map(_line, questions), scratch)]


def _line(question: Question) -> str:
    subtopologies = (
        f"{_encoded(each)}:{subtopology.partition_count}:{'stateful' if subtopology.is_stateful else 'stateless'}"
        for each, subtopology in question.topology.by_id.items()
    )
    members = (
        ":".join(
            (
                _encoded(member_id),
                _encoded(member.process_id),
                _tasks(member.active_tasks),
                _tasks(member.standby_tasks),
                ".".join(
                    f"{_encoded(each)}={'+'.join(f'{partition}@{offset}' for partition, offset in offsets.items())}"
                    for each, offsets in member.task_offsets.items()
                ),
            )
        )
        for member_id, member in sorted(question.group.members.items(), key=lambda item: text_order(item[0]))
    )
    return " ".join(
        (
            "hashed" if question.is_hashed else "sorted",
            str(question.group.num_standby_replicas),
            ",".join(subtopologies) or "-",
            ",".join(members) or "-",
        )
    )


def _tasks(tasks: Tasks) -> str:
    return ".".join(f"{_encoded(each)}={'+'.join(map(str, sorted(partitions)))}" for each, partitions in tasks.items())


def _assignment(line: str) -> StreamsGroupAssignment | str:
    if line.startswith("!"):
        return line
    members = (member.split(":") for member in line.split(",") if member)
    return {
        _decoded(member_id): MemberTasks(active=_parsed(active), standby=_parsed(standby), warmup={})
        for member_id, active, standby in members
    }


def _parsed(text: str) -> Tasks:
    parts = (subtopology.split("=") for subtopology in text.split(".") if subtopology)
    return {_decoded(subtopology_id): frozenset(map(int, partitions.split("+"))) for subtopology_id, partitions in parts}


def _encoded(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decoded(text: str) -> str:
    return urlsafe_b64decode(f"{text}==").decode()
