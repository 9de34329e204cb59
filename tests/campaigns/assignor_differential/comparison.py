"""Asks both, and tells what differs.

Where Kafka has the group sorted by ids, the assignments must be the same. Where it has the group in hash tables, as its broker
has it, who gets which partition depends on their order. The same must be then: of ``range`` all, of ``uniform`` where all
subscribe to the same topics the members' sizes and how many partitions stay where they are.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from odradek.coordinator.group.assignor.spec import Assign
from tests.campaigns.assignor_differential.history import ASSIGNORS, History
from tests.campaigns.assignor_differential.kafkas import Question, kafkas_answers
from tests.coordinator.group.assignor.assignments import Plain, kept, plain, sizes

# One history in so many is of a group some hundred members strong.
_BIG_ONE_IN = 50
_BIG_SCALE = 8


def questions_of(seeds: Iterable[int]) -> list[Question]:
    """The steps of the histories of these seeds, each sorted, and hashed as well where that determines something."""
    found = []
    for seed in seeds:
        for assignor, group in History(seed, _BIG_SCALE if seed % _BIG_ONE_IN == 0 else 1).steps():
            found.append(Question(assignor, group))
            if assignor == "range" or group.is_homogeneous:
                found.append(Question(assignor, group, is_hashed=True))
    return found


def differences(
    questions: Sequence[Question], answers: Sequence[Plain | str], assignors: Mapping[str, Assign] = ASSIGNORS
) -> list[str]:
    """In words, what these assignors do otherwise than Kafka did."""
    found = []
    for number, (question, kafkas) in enumerate(zip(questions, answers, strict=True)):
        ours = plain(assignors[question.assignor](question.group))
        if not _is_same(question, ours, kafkas):
            order = "hashed" if question.is_hashed else "sorted"
            found.append(f"input {number}: {question.assignor}, {order}: {question.group}\n  ours {ours}\n  Kafka {kafkas}")
    return found


def _is_same(question: Question, ours: Plain, kafkas: Plain | str) -> bool:
    if isinstance(kafkas, str):
        return False
    if not question.is_hashed or question.assignor == "range":
        return ours == kafkas
    group = question.group
    are_equal = sorted(sizes(group, ours).values()) == sorted(sizes(group, kafkas).values())
    return are_equal and kept(group, ours) == kept(group, kafkas)


def compare(seeds: Iterable[int], scratch: Path) -> tuple[list[Question], list[Plain | str]]:
    """The questions of the seeds, and Kafka's answers."""
    questions = questions_of(seeds)
    return questions, kafkas_answers(questions, scratch)
