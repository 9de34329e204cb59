"""Apache Kafka's assignors, in a JVM of their own (``Assignors.java``): groups in, a line each, and assignments out.

    group        assignor order HOMOGENEOUS|HETEROGENEOUS topics members
    topics       id:partitions, separated by commas; - for none
    members      id:instance id:topic ids:partitions, separated by commas
    topic ids    separated by dots
    partitions   topic id=index+index, separated by dots
    assignment   id:partitions, separated by commas; ! and a text for an exception

Topic ids are in Kafka's form, members' and instances' ids in base64.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple
from uuid import UUID

from odradek.coordinator.group.assignor.spec import GroupSpec, by_id, text_order
from tests.campaigns.kafka_tools.java_program import answered_lines
from tests.coordinator.group.assignor.assignments import Plain, plain

SOURCE = Path(__file__).with_name("Assignors.java")

Name = Literal["range", "uniform"]


class Question(NamedTuple):
    """A group, the assignor that is asked, and whether Kafka has the group in hash tables, or sorted by ids."""

    assignor: Name
    group: GroupSpec
    is_hashed: bool = False


def kafkas_answers(questions: Iterable[Question], scratch: Path) -> list[Plain | str]:
    """Return Kafka's assignment, or the text of its exception."""
    return [_assignment(line) for line in answered_lines(SOURCE, map(_line, questions), scratch)]


def _line(question: Question) -> str:
    group = question.group
    topics = ",".join(f"{_id(topic_id)}:{group.topics[topic_id].partition_count}" for topic_id in by_id(group.topics))
    members = (
        ":".join(
            (
                _encoded(member_id),
                _encoded(member.instance_id or ""),
                ".".join(map(_id, by_id(member.topic_ids))),
                ".".join(f"{_id(topic_id)}={_indexes(member.assignment[topic_id])}" for topic_id in by_id(member.assignment)),
            )
        )
        for member_id, member in sorted(group.members.items(), key=lambda item: text_order(item[0]))
    )
    return " ".join(
        (
            question.assignor,
            "hashed" if question.is_hashed else "sorted",
            "HOMOGENEOUS" if group.is_homogeneous else "HETEROGENEOUS",
            topics or "-",
            ",".join(members) or "-",
        )
    )


def _assignment(line: str) -> Plain | str:
    if line.startswith("!"):
        return line
    members = (member.split(":") for member in line.split(",") if member)
    return plain({_decoded(member_id): dict(_topics(partitions)) for member_id, partitions in members})


def _topics(partitions: str) -> Iterable[tuple[UUID, frozenset[int]]]:
    for topic in partitions.split("."):
        if topic:
            topic_id, _, indexes = topic.partition("=")
            yield UUID(bytes=urlsafe_b64decode(f"{topic_id}==")), frozenset(map(int, indexes.split("+")))


def _indexes(indexes: Iterable[int]) -> str:
    return "+".join(map(str, sorted(indexes)))


def _id(topic_id: UUID) -> str:
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def _encoded(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode()


def _decoded(text: str) -> str:
    return urlsafe_b64decode(text).decode()
