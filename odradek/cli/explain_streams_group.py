"""A streams group as its records in ``__consumer_offsets`` tell it: the tasks that move, and why.

For an active task that moves from one member to another it has the time until the old member gave it up, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

from odradek.coordinator.group.assignor.streams_interface import MemberTasks
from odradek.coordinator.group.consumer.member import LEAVE_STATIC_EPOCH
from odradek.coordinator.group.modern_group import INITIAL_EPOCH
from odradek.coordinator.group.streams.explanations import TaskId, TaskMove, task_moves
from odradek.protocol.coordinator_records.streams_groups import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.coordinator.group.assignor.streams_interface import Tasks
    from odradek.protocol.coordinator_records import StreamsGroupKey, StreamsGroupValue
    from odradek.protocol.coordinator_records.streams_groups import TargetTaskIds, TaskIds

_NO_TOPOLOGY: Final = -1


@dataclass(slots=True)
class ExplainedTaskMove:
    """A move. ``kept_ms``: from the target assignment until the source gave the active task up; None while it has not."""

    move: TaskMove
    kept_ms: int | None = None


@dataclass(slots=True)
class StreamsExplanation:
    """The explanation of a target assignment. ``at_ms`` is since the epoch. ``moves`` is None if the log lacks the one before."""

    epoch: int
    at_ms: int
    changes: list[str]
    moves: list[ExplainedTaskMove] | None


@dataclass(slots=True)
class _Epoch:
    """Changes since the last target assignment, and the targets of the members that are gone since."""

    changes: list[str] = field(default_factory=list)
    departed: dict[str, MemberTasks] = field(default_factory=dict)


class StreamsGroupStory:
    """A streams group as its records describe it."""

    def __init__(self) -> None:
        self.explanations: list[StreamsExplanation] = []
        self._forget()

    @property
    def is_there(self) -> bool:
        """Return whether the group exists at the end of the log."""
        return self._metadata is not None

    def _forget(self) -> None:
        self._members: dict[str, StreamsGroupMemberMetadataValue] = {}
        self._targets: dict[str, MemberTasks] = {}
        # The targets of the last assignment; None if the log lacks it.
        self._previous: dict[str, MemberTasks] | None = None
        self._held: dict[str, set[TaskId]] = {}
        self._metadata: StreamsGroupMetadataValue | None = None
        self._topology_epoch = _NO_TOPOLOGY
        self._since = _Epoch()

    def take(self, key: StreamsGroupKey, value: StreamsGroupValue | None, at_ms: int) -> None:
        """Apply the next record of the group, written at ``at_ms``."""
        if isinstance(key, StreamsGroupMemberMetadataKey):
            self._take_member(key.member_id, cast("StreamsGroupMemberMetadataValue | None", value), at_ms)
        elif isinstance(key, StreamsGroupCurrentMemberAssignmentKey):
            self._take_assignment(key.member_id, cast("StreamsGroupCurrentMemberAssignmentValue | None", value), at_ms)
        elif isinstance(key, StreamsGroupTargetAssignmentMemberKey):
            self._take_target(key.member_id, cast("StreamsGroupTargetAssignmentMemberValue | None", value))
        elif isinstance(key, StreamsGroupTargetAssignmentMetadataKey):
            if value is not None:
                self._explain(cast("StreamsGroupTargetAssignmentMetadataValue", value).assignment_epoch, at_ms)
        elif isinstance(key, StreamsGroupTopologyKey):
            self._take_topology(cast("StreamsGroupTopologyValue | None", value))
        elif isinstance(key, StreamsGroupMetadataKey):
            self._take_epoch(cast("StreamsGroupMetadataValue | None", value))

    def _take_member(self, member_id: str, value: StreamsGroupMemberMetadataValue | None, at_ms: int) -> None:
        known = self._members.get(member_id)
        if value is None:
            if self._members.pop(member_id, None) is not None:
                self._since.changes.append(f"{member_id} is gone")
                self._release(member_id, set(), at_ms)
            return
        self._members[member_id] = value
        if known is None:
            self._since.changes.append(f"{member_id} of process {value.process_id} joined")
        elif known.topology_epoch != value.topology_epoch:
            self._since.changes.append(f"{member_id} has the topology of epoch {value.topology_epoch}")
        elif known.process_id != value.process_id:
            self._since.changes.append(f"{member_id} is of process {value.process_id}, previously of {known.process_id}")

    def _take_assignment(self, member_id: str, value: StreamsGroupCurrentMemberAssignmentValue | None, at_ms: int) -> None:
        held = set() if value is None else _ids([*value.active_tasks, *value.active_tasks_pending_revocation])
        if value is not None and value.member_epoch == LEAVE_STATIC_EPOCH:
            self._since.changes.append(f"static member {member_id} is away and keeps its tasks")
        self._release(member_id, held, at_ms)
        self._held[member_id] = held

    def _take_target(self, member_id: str, value: StreamsGroupTargetAssignmentMemberValue | None) -> None:
        if value is not None:
            self._targets[member_id] = MemberTasks(*map(_tasks, value))
            return
        self._targets.pop(member_id, None)
        departed = (self._previous or {}).get(member_id)
        if departed is not None:
            self._since.departed[member_id] = departed

    def _take_topology(self, value: StreamsGroupTopologyValue | None) -> None:
        if value is not None and value.epoch != self._topology_epoch:
            self._topology_epoch = value.epoch
            self._since.changes.append(f"the topology of epoch {value.epoch} has {len(value.subtopologies)} subtopologies")

    def _take_epoch(self, value: StreamsGroupMetadataValue | None) -> None:
        if value is None:
            self._forget()
            return
        known, self._metadata = self._metadata, value
        if known is None:
            return
        if known.last_assignment_configs != value.last_assignment_configs:
            configs = ", ".join(f"{each.key}={each.value}" for each in value.last_assignment_configs or ())
            self._since.changes.append(f"its assignment configs are {configs or 'none'}")
        if known.metadata_hash != value.metadata_hash:
            self._since.changes.append("its topics or their partitions have changed")

    def _explain(self, epoch: int, at_ms: int) -> None:
        if self._metadata is None or (epoch == INITIAL_EPOCH and not self._members):
            return
        since, self._since = self._since, _Epoch()
        found: list[ExplainedTaskMove] | None = None
        if self._previous is not None or epoch == INITIAL_EPOCH + 1:
            before = {**since.departed, **(self._previous or {})}
            found = [ExplainedTaskMove(move) for move in task_moves(before, self._targets, self._members.keys())]
        self._previous = dict(self._targets)
        self.explanations.append(StreamsExplanation(epoch, at_ms, since.changes, found))

    def _release(self, member_id: str, held: set[TaskId], at_ms: int) -> None:
        """Reduce a member's active tasks to ``held``, and note how long it kept the others."""
        released = self._held.pop(member_id, set()) - held
        if not released or not self.explanations:
            return
        last = self.explanations[-1]
        for each in last.moves or ():
            move = each.move
            if move.is_active and move.source == member_id and move.task in released and each.kept_ms is None:
                each.kept_ms = at_ms - last.at_ms


def _tasks(tasks: Iterable[TargetTaskIds]) -> Tasks:
    return {each.subtopology_id: frozenset(each.partitions) for each in tasks}


def _ids(tasks: Iterable[TaskIds]) -> set[TaskId]:
    return {TaskId(each.subtopology_id, partition) for each in tasks for partition in each.partitions}
