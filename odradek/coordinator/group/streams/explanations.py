"""Explains a target assignment of a streams group: the tasks that move, and why. A pure function of old and new targets.

An active task moves if its member in the old targets, if any, is not its member in the new ones. The standbys of a task move if
other members have them. Members that lose one are paired with members that get one, in the order of their ids.

The first of these that holds is the reason:

    the task is in no new target, or in no old one             TASK_GONE, TASK_NEW
    an active task:     the source is no member any more       MEMBER_GONE
                        the target had a standby of it         HAD_STANDBY
    a standby:          the source has it active now           ACTIVE_NOW
                        the target had it active               WAS_ACTIVE
                        the source is no member any more       MEMBER_GONE
                        no source, or no target                STANDBY_MISSING, STANDBY_SPARE
    else                the source had more of them than now   BALANCE
                        anything else                          SHARED_ANEW
"""

from __future__ import annotations

from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from odradek.coordinator.group.assignor.streams_interface import StreamsGroupAssignment, Tasks


class TaskMoveReason(StrEnum):
    """Why a task moves."""

    TASK_NEW = "nobody had it"
    TASK_GONE = "nobody gets it"
    MEMBER_GONE = "its member is gone"
    HAD_STANDBY = "the member had a standby of it"
    ACTIVE_NOW = "the member has it active now"
    WAS_ACTIVE = "the member had it active"
    STANDBY_MISSING = "it had too few standbys"
    STANDBY_SPARE = "it has enough standbys without this one"
    BALANCE = "its member had more than its share"
    SHARED_ANEW = "the load is shared anew"


class TaskId(NamedTuple):
    """A task."""

    subtopology_id: str
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology_id}_{self.partition}"


class TaskMove(NamedTuple):
    """A task that moves. ``source`` is None if no member had it, ``target`` if no member gets it."""

    task: TaskId
    is_active: bool
    source: str | None
    target: str | None
    reason: TaskMoveReason

    def __str__(self) -> str:
        role = "active" if self.is_active else "standby"
        return f"{role} task {self.task} from {self.source or 'nobody'} to {self.target or 'nobody'}: {self.reason.value}"


class _Holders(NamedTuple):
    """The members that have each task, and the numbers of active and standby tasks of each member."""

    active: dict[TaskId, str]
    standby: dict[TaskId, set[str]]
    counts: dict[str, tuple[int, int]]


def task_moves(before: StreamsGroupAssignment, after: StreamsGroupAssignment, members: AbstractSet[str]) -> list[TaskMove]:
    """Return the moves, active tasks first, by subtopology and partition.

    Args:
        before: the old targets, including those of members that are gone.
        after: the new targets.
        members: the ids of the present members.
    """
    old, new = _holders(before), _holders(after)
    moves = []
    for task in sorted(old.active.keys() | new.active.keys()):
        source, target = old.active.get(task), new.active.get(task)
        if source != target:
            moves.append(TaskMove(task, True, source, target, _why_active(task, source, target, old, new, members)))
    for task in sorted(old.standby.keys() | new.standby.keys()):
        had, has = old.standby.get(task, set()), new.standby.get(task, set())
        for source, target in zip_longest(sorted(had - has), sorted(has - had)):
            moves.append(TaskMove(task, False, source, target, _why_standby(task, source, target, old, new, members)))
    return moves


def _why_active(
    task: TaskId, source: str | None, target: str | None, old: _Holders, new: _Holders, members: AbstractSet[str]
) -> TaskMoveReason:
    if source is None:
        return TaskMoveReason.TASK_NEW
    if target is None:
        return TaskMoveReason.TASK_GONE
    if source not in members:
        return TaskMoveReason.MEMBER_GONE
    if target in old.standby.get(task, ()):
        return TaskMoveReason.HAD_STANDBY
    return _why_else(0, source, old, new)


def _why_standby(
    task: TaskId, source: str | None, target: str | None, old: _Holders, new: _Holders, members: AbstractSet[str]
) -> TaskMoveReason:
    if task not in new.active:
        return TaskMoveReason.TASK_GONE
    if task not in old.active:
        return TaskMoveReason.TASK_NEW
    if source is not None and new.active[task] == source:
        return TaskMoveReason.ACTIVE_NOW
    if target is not None and old.active[task] == target:
        return TaskMoveReason.WAS_ACTIVE
    if source is not None and source not in members:
        return TaskMoveReason.MEMBER_GONE
    if source is None:
        return TaskMoveReason.STANDBY_MISSING
    return TaskMoveReason.STANDBY_SPARE if target is None else _why_else(1, source, old, new)


def _why_else(role: int, source: str, old: _Holders, new: _Holders) -> TaskMoveReason:
    is_fewer = new.counts[source][role] < old.counts[source][role] if source in new.counts else True
    return TaskMoveReason.BALANCE if is_fewer else TaskMoveReason.SHARED_ANEW


def _holders(targets: StreamsGroupAssignment) -> _Holders:
    found = _Holders({}, {}, {})
    for member_id, tasks in targets.items():
        active, standby = _ids(tasks.active), _ids(tasks.standby)
        found.active.update(dict.fromkeys(active, member_id))
        for task in standby:
            found.standby.setdefault(task, set()).add(member_id)
        found.counts[member_id] = len(active), len(standby)
    return found


def _ids(tasks: Tasks) -> list[TaskId]:
    return [TaskId(subtopology_id, partition) for subtopology_id, partitions in tasks.items() for partition in partitions]
