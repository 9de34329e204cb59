"""Asks both, and tells what differs.

Kafka's assignor keeps processes and members in hash tables. If their ids have hashes in the order of the ids, the assignments
must be the same. With other ids, the choice among equally loaded members depends on the tables. Then each task must have as many
active and standby members as in Kafka's assignment. Some more or fewer tasks may stay with their members, but over all inputs
as many stay as with Kafka, give or take one percent.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

from odradek.coordinator.group.assignor import sticky_task_assignor
from odradek.coordinator.group.assignor.streams_interface import StreamsGroupAssignment, StreamsGroupSpec
from tests.campaigns.task_assignor_differential.history import History, renamed
from tests.campaigns.task_assignor_differential.kafkas import Question, kafkas_answers

# One history in so many is of a group some hundred members strong.
_BIG_ONE_IN = 50
_BIG_SCALE = 8
_TOLERANCE = 0.01


def questions_of(seeds: Iterable[int]) -> list[Question]:
    """The steps of the histories of these seeds, each with ids in the order of their hashes, and with other ids."""
    found = []
    for seed in seeds:
        random = Random(seed)
        for group, topology in History(seed, _BIG_SCALE if seed % _BIG_ONE_IN == 0 else 1).steps():
            found.append(Question(renamed(random, group), topology, is_hashed=False))
            found.append(Question(group, topology, is_hashed=True))
    return found


def differences(questions: Sequence[Question], answers: Sequence[StreamsGroupAssignment | str]) -> list[str]:
    """In words, what odradek's assignor does otherwise than Kafka's did."""
    found = []
    ours_stay = kafkas_stay = 0
    for number, (question, kafkas) in enumerate(zip(questions, answers, strict=True)):
        # By its module: a planted fault takes its place there.
        ours = sticky_task_assignor.assign_sticky(question.group, question.topology)
        is_same = ours == kafkas
        if question.is_hashed and not isinstance(kafkas, str):
            is_same = _members_of_tasks(ours) == _members_of_tasks(kafkas)
            ours_stay += _staying(question.group, ours)
            kafkas_stay += _staying(question.group, kafkas)
        if not is_same:
            order = "hashed" if question.is_hashed else "sorted"
            found.append(f"input {number}: {order}: {question}\n  ours {ours}\n  Kafka {kafkas}")
    if abs(ours_stay - kafkas_stay) > kafkas_stay * _TOLERANCE:
        found.append(f"over all inputs, {ours_stay} tasks stay with their members; with Kafka, {kafkas_stay}")
    return found


def _members_of_tasks(assignment: StreamsGroupAssignment) -> Counter[tuple[str, str, int]]:
    """How many active and standby members each task has."""
    return Counter(
        (kind, subtopology_id, partition)
        for tasks in assignment.values()
        for kind, of_kind in tasks._asdict().items()
        for subtopology_id, partitions in of_kind.items()
        for partition in partitions
    )


def _staying(group: StreamsGroupSpec, assignment: StreamsGroupAssignment) -> int:
    """How many active tasks stay with their members."""
    return sum(
        len(partitions & group.members[member_id].active_tasks.get(subtopology_id, frozenset()))
        for member_id, tasks in assignment.items()
        for subtopology_id, partitions in tasks.active.items()
    )


def compare(seeds: Iterable[int], scratch: Path) -> tuple[list[Question], list[StreamsGroupAssignment | str]]:
    """The questions of the seeds, and Kafka's answers."""
    questions = questions_of(seeds)
    return questions, kafkas_answers(questions, scratch)
