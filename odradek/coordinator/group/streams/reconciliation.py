"""The next step of a member towards its target: a pure function, Kafka's ``CurrentAssignmentBuilder`` of streams groups.

For each role (active, standby, warm-up):

    kept        =  assigned  ∩  target
    to revoke   =  assigned  -  kept
    missing     =  target    -  kept
    unreleased  =  missing tasks that another member still has
    free        =  missing   -  unreleased

A task becomes active when no process has it as an active task. A process has a task in one role only. So a missing task is also
unreleased while another member of the same process has it in any role.

While the member reports owning a task to revoke, it stays in its epoch with ``kept``, and is asked to give the others up. Then it
enters the target's epoch with ``kept`` and ``free``, and waits if any task is unreleased.

A change of role within the member is no revocation:

    active to standby       the standby is kept at once, and the active task revoked
    standby to warm-up      changes at once, and so does the reverse
    standby to active       the standby is kept until the active task is free; so is a warm-up task

Source: ``CurrentAssignmentBuilder`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003  the type of a compiled dataclass's field
from collections.abc import Set as AbstractSet  # noqa: TC003  the type of a compiled dataclass's field
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from odradek.coordinator.group.assignor.streams_interface import (
    MemberTasks,  # noqa: TC001  the type of a compiled dataclass's field
)
from odradek.coordinator.group.streams.member import NOTHING_OWNED, MemberState, OwnedTasks, StreamsGroupMember
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.coordinator.group.assignor.streams_interface import Tasks

# Subtopology id and partition.
Task: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """The inputs of the next step.

    Args:
        target_epoch: the epoch of the target assignment.
        target: the member's target.
        active_process: the process that has an active task, None if no process has it.
        standby_processes: the processes that have a standby of a task.
        warmup_processes: the processes that warm a task up.
        owned: the tasks that the member reports owning, None if it does not say.
    """

    target_epoch: int
    target: MemberTasks
    active_process: Callable[[Task], str | None]
    standby_processes: Callable[[Task], AbstractSet[str]]
    warmup_processes: Callable[[Task], AbstractSet[str]]
    owned: MemberTasks | None

    def has_kept_any(self, tasks: OwnedTasks) -> bool:
        """Return whether the member reports owning any of ``tasks`` in its role, or does not report what it owns."""
        if self.owned is None:
            return True
        return any(
            not partitions.isdisjoint(own.get(subtopology, frozenset()))
            for own, role in zip(self.owned, tasks.without_epochs(), strict=True)
            for subtopology, partitions in role.items()
        )


def reconcile(member: StreamsGroupMember, given: Reconciliation) -> StreamsGroupMember:
    """Return the member after the step, or ``member`` itself if it cannot move.

    KafkaError: FENCED_MEMBER_EPOCH for a member in a state known only to a newer Kafka, unless it owns nothing.
    """
    if member.state is MemberState.UNKNOWN:
        if given.owned is None or any(given.owned):
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "a newer version wrote this member's state: give up all tasks and join again",
            )
        return _next(member, given, given.target_epoch)
    if member.state is MemberState.UNREVOKED_TASKS:
        if given.has_kept_any(member.pending_revocation):
            return member
        return _next(member, given, member.member_epoch + 1)
    if member.is_reconciled_to(given.target_epoch):
        return member
    return _next(member, given, member.member_epoch)


class _Role:
    """The tasks of a member in one role, while its next step is decided."""

    __slots__ = ("before", "free", "has_unreleased", "kept", "to_revoke")

    def __init__(self, before: AbstractSet[Task], target: AbstractSet[Task], is_unreleased: Callable[[Task], bool]) -> None:
        self.before = before
        self.kept = set(before & target)
        self.to_revoke = set(before - target)
        missing = target - before
        self.free = {task for task in missing if not is_unreleased(task)}
        self.has_unreleased = len(self.free) < len(missing)

    def take_over_from(self, other: _Role) -> None:
        """Change tasks of ``other`` to this role at once."""
        changed = self.free & other.before
        self.free -= changed
        self.kept |= changed
        other.to_revoke -= changed


def _next(member: StreamsGroupMember, given: Reconciliation, epoch: int) -> StreamsGroupMember:
    before = {(subtopology, index): since for subtopology, own in member.assigned.active.items() for index, since in own.items()}
    target_active = _pairs(given.target.active)
    active, standby, warmup = _roles(member, given, before.keys(), target_active)
    # An active task that becomes a standby is granted, and revoked as an active task all the same.
    demoted = standby.free & before.keys()
    standby.free -= demoted
    standby.kept |= demoted
    warmup.take_over_from(standby)
    standby.take_over_from(warmup)
    for role in (standby, warmup):
        role.to_revoke -= target_active
    to_revoke = OwnedTasks(
        _with_epochs(active.to_revoke, before), _by_subtopology(standby.to_revoke), _by_subtopology(warmup.to_revoke)
    )
    must_revoke = bool(active.to_revoke or standby.to_revoke or warmup.to_revoke) and given.has_kept_any(to_revoke)
    for role in (standby, warmup):
        promoted = role.before & target_active
        role.kept |= promoted if must_revoke else promoted - active.free
    if must_revoke:
        kept = OwnedTasks(_with_epochs(active.kept, before), _by_subtopology(standby.kept), _by_subtopology(warmup.kept))
        return _stepped(member, epoch, MemberState.UNREVOKED_TASKS, kept, to_revoke)
    now = before | dict.fromkeys(active.free, given.target_epoch)
    assigned = OwnedTasks(
        _with_epochs(active.kept | active.free, now),
        _by_subtopology(standby.kept | standby.free),
        _by_subtopology(warmup.kept | warmup.free),
    )
    is_waiting = active.has_unreleased or standby.has_unreleased or warmup.has_unreleased
    state = MemberState.UNRELEASED_TASKS if is_waiting else MemberState.STABLE
    return _stepped(member, given.target_epoch, state, assigned, NOTHING_OWNED)


def _roles(
    member: StreamsGroupMember, given: Reconciliation, own_active: AbstractSet[Task], target_active: AbstractSet[Task]
) -> tuple[_Role, _Role, _Role]:
    own_standby, own_warmup = _pairs(member.assigned.standby), _pairs(member.assigned.warmup)
    process = member.process_id

    def is_active_here(task: Task) -> bool:
        return given.active_process(task) == process

    def is_standby_here(task: Task) -> bool:
        return process in given.standby_processes(task)

    def is_warmup_here(task: Task) -> bool:
        return process in given.warmup_processes(task)

    def is_standby_beside(task: Task) -> bool:
        return is_standby_here(task) and task not in own_standby

    def is_warmup_beside(task: Task) -> bool:
        return is_warmup_here(task) and task not in own_warmup

    return (
        _Role(
            own_active,
            target_active,
            lambda task: given.active_process(task) is not None or is_standby_beside(task) or is_warmup_beside(task),
        ),
        _Role(
            own_standby,
            _pairs(given.target.standby),
            lambda task: (is_active_here(task) and task not in own_active) or is_standby_here(task) or is_warmup_beside(task),
        ),
        _Role(
            own_warmup,
            _pairs(given.target.warmup),
            lambda task: is_active_here(task) or is_standby_beside(task) or is_warmup_here(task),
        ),
    )


def _pairs(tasks: Tasks) -> set[Task]:
    return {(subtopology, index) for subtopology, partitions in tasks.items() for index in partitions}


def _by_subtopology(tasks: Iterable[Task]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for subtopology, index in tasks:
        found.setdefault(subtopology, set()).add(index)
    return {subtopology: frozenset(found[subtopology]) for subtopology in sorted(found)}


def _with_epochs(tasks: Iterable[Task], epochs: dict[Task, int]) -> dict[str, dict[int, int]]:
    by_subtopology = _by_subtopology(tasks)
    return {
        subtopology: {index: epochs[subtopology, index] for index in sorted(partitions)}
        for subtopology, partitions in by_subtopology.items()
    }


def _stepped(
    member: StreamsGroupMember, epoch: int, state: MemberState, assigned: OwnedTasks, revoked: OwnedTasks
) -> StreamsGroupMember:
    return replace(
        member,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
        state=state,
        assigned=assigned,
        pending_revocation=revoked,
    )
