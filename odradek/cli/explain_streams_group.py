"""A streams group as its records in ``__consumer_offsets`` tell it: the tasks that move, and why.

For an active task that moves from one member to another it has the time until the old member gave it up, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.cli.group_story import ExplainedMove, GroupStory
from odradek.coordinator.group.assignor.streams_interface import MemberTasks
from odradek.coordinator.group.consumer.member import LEAVE_STATIC_EPOCH
from odradek.coordinator.group.streams.explanations import TaskId, task_moves
from odradek.coordinator.group.streams.member import KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.coordinator.group.assignor.streams_interface import Tasks
    from odradek.protocol.coordinator_records.streams_groups import (
        LastAssignmentConfig,
        StreamsGroupCurrentMemberAssignmentValue,
        StreamsGroupMemberMetadataValue,
        StreamsGroupMetadataValue,
        StreamsGroupTargetAssignmentMemberValue,
        StreamsGroupTopologyKey,
        StreamsGroupTopologyValue,
        TargetTaskIds,
        TaskIds,
    )

_NO_TOPOLOGY: Final = -1


class StreamsGroupStory(GroupStory):
    """A streams group as its records describe it."""

    def __init__(self) -> None:
        super().__init__(KEYS)

    def _forget(self) -> None:
        super()._forget()
        self._targets: dict[str, MemberTasks] = {}
        # The targets of the last assignment, and of the members that are gone since.
        self._previous: dict[str, MemberTasks] = {}
        self._configs: tuple[LastAssignmentConfig, ...] | None = None
        self._topology_epoch = _NO_TOPOLOGY

    def _take_member(self, member_id: str, value: StreamsGroupMemberMetadataValue | None, at_ms: int) -> None:
        known = self._members.get(member_id)
        if value is None:
            if self._members.pop(member_id, None) is not None:
                self._changes.append(f"{member_id} is gone")
                self._release(member_id, set(), at_ms)
            return
        self._members[member_id] = value
        if known is None:
            self._changes.append(f"{member_id} of process {value.process_id} joined")
        elif known.topology_epoch != value.topology_epoch:
            self._changes.append(f"{member_id} has the topology of epoch {value.topology_epoch}")
        elif known.process_id != value.process_id:
            self._changes.append(f"{member_id} is of process {value.process_id}, previously of {known.process_id}")

    def _take_assignment(self, member_id: str, value: StreamsGroupCurrentMemberAssignmentValue | None, at_ms: int) -> None:
        held = set() if value is None else _ids([*value.active_tasks, *value.active_tasks_pending_revocation])
        if value is not None and value.member_epoch == LEAVE_STATIC_EPOCH:
            self._changes.append(f"static member {member_id} is away and keeps its tasks")
        self._release(member_id, held, at_ms)
        self._held[member_id] = held

    def _take_target(self, member_id: str, value: StreamsGroupTargetAssignmentMemberValue | None) -> None:
        if value is not None:
            self._targets[member_id] = MemberTasks(*map(_tasks, value))
            return
        self._targets.pop(member_id, None)

    def _take_other(self, key: StreamsGroupTopologyKey, value: StreamsGroupTopologyValue | None) -> None:  # noqa: ARG002  one key
        if value is not None and value.epoch != self._topology_epoch:
            self._topology_epoch = value.epoch
            self._changes.append(f"the topology of epoch {value.epoch} has {len(value.subtopologies)} subtopologies")

    def _take_epoch(self, value: StreamsGroupMetadataValue) -> None:
        known, self._hash = self._hash, value.metadata_hash
        configs, self._configs = self._configs, value.last_assignment_configs
        if known is None:
            return
        if configs != value.last_assignment_configs:
            shown = ", ".join(f"{each.key}={each.value}" for each in value.last_assignment_configs or ())
            self._changes.append(f"its assignment configs are {shown or 'none'}")
        if known != value.metadata_hash:
            self._changes.append("its topics or their partitions have changed")

    def _moves(self) -> list[ExplainedMove]:
        return [
            ExplainedMove(move.task, move.source, move.target, move.reason.value, "active" if move.is_active else "standby")
            for move in task_moves(self._previous, self._targets, self._members.keys())
        ]

    def _keep_targets(self) -> None:
        self._previous = dict(self._targets)


def _tasks(tasks: Iterable[TargetTaskIds]) -> Tasks:
    return {each.subtopology_id: frozenset(each.partitions) for each in tasks}


def _ids(tasks: Iterable[TaskIds]) -> set[TaskId]:
    return {TaskId(each.subtopology_id, partition) for each in tasks for partition in each.partitions}
