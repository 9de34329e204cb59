"""The tasks of a streams group (KIP-1071), read from an answer to StreamsGroupDescribe."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from odradek.protocol.message_types.streams_group_describe import Assignment, DescribedGroup, Member, Subtopology, TaskIds


class StreamsTask(NamedTuple):
    """A task, and the ids of the members that have it.

    ``moves_to`` is the member that is to be active, if that is another than ``active``. ``lags`` has, by member id, the number
    of changelog offsets that the member's state is behind, as far as the member has reported it.
    """

    subtopology_id: str
    partition: int
    active: str | None
    standby: tuple[str, ...]
    warmup: tuple[str, ...]
    moves_to: str | None
    lags: Mapping[str, int]

    def __str__(self) -> str:
        return f"{self.subtopology_id}_{self.partition}"


def tasks_of(group: DescribedGroup) -> list[StreamsTask]:
    """Return the tasks that a member has or is to have, by subtopology and partition."""
    active: dict[tuple[str, int], str] = {}
    target: dict[tuple[str, int], str] = {}
    standby: dict[tuple[str, int], list[str]] = {}
    warmup: dict[tuple[str, int], list[str]] = {}
    lags: dict[tuple[str, int], dict[str, int]] = {}
    for member in group.members:
        active.update(dict.fromkeys(_tasks(member.assignment.active_tasks), member.member_id))
        target.update(dict.fromkeys(_tasks(member.target_assignment.active_tasks), member.member_id))
        for found, kind in ((standby, member.assignment.standby_tasks), (warmup, member.assignment.warmup_tasks)):
            for task in _tasks(kind):
                found.setdefault(task, []).append(member.member_id)
        for task, lag in _state_lags(member).items():
            lags.setdefault(task, {})[member.member_id] = lag
    return [
        StreamsTask(
            *task,
            active.get(task),
            tuple(standby.get(task, ())),
            tuple(warmup.get(task, ())),
            target[task] if target.get(task) not in (None, active.get(task)) else None,
            lags.get(task, {}),
        )
        for task in sorted(active.keys() | target.keys() | standby.keys() | warmup.keys())
    ]


def _state_lags(member: Member) -> dict[tuple[str, int], int]:
    ends = {(each.subtopology_id, each.partition): each.offset for each in member.task_end_offsets}
    reported = ((each, (each.subtopology_id, each.partition)) for each in member.task_offsets)
    return {task: max(ends[task] - each.offset, 0) for each, task in reported if task in ends}


def input_topics(subtopology: Subtopology) -> list[str]:
    """Return the topics that a subtopology reads, by name."""
    return sorted({*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)})


def input_partitions(assignment: Assignment, subtopologies: Sequence[Subtopology]) -> list[tuple[str, int]]:
    """Return the partitions that a member's active tasks read, some of which may not exist."""
    topics = {each.subtopology_id: input_topics(each) for each in subtopologies}
    return sorted((topic, index) for task_id, index in _tasks(assignment.active_tasks) for topic in topics.get(task_id, ()))


def _tasks(tasks: Sequence[TaskIds]) -> Iterator[tuple[str, int]]:
    return ((each.subtopology_id, partition) for each in tasks for partition in each.partitions)
