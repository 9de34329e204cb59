"""A streams group, as read from its records. Only ``replay`` methods change it, and their changes can be rolled back.

Some state is not persistent, as in Kafka: the configured topology, which follows from the records and the cluster's topics, the
offsets that members report, the member that asked to shut the application down, and the epoch of the endpoints.

A process has a task in one role only. In a log that is loaded, the last holder of an active task counts, as in
``consumer.group``. Kafka keeps the processes of a task, and forgets one if an old record of another member in it is replayed.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  mypyc makes a NamedTuple's types at run time
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.coordinator.group.assignor.streams_interface import MemberTasks
from odradek.coordinator.group.modern_group import NO_EPOCH, ModernGroup
from odradek.coordinator.group.streams.member import (
    NO_TASKS,
    AssignmentBasis,
    StreamsGroupMember,
    StreamsGroupState,
    group_tombstones,
)
from odradek.coordinator.group.streams.topology import StreamsTopology
from odradek.coordinator.runtime.timeline import TimelineDict, TimelineValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from odradek.coordinator.group.streams.configured_topology import ConfiguredTopology
    from odradek.coordinator.group.streams.member import OwnedTasks
    from odradek.coordinator.group.streams.reconciliation import Task
    from odradek.coordinator.runtime.result import CoordinatorRecord
    from odradek.coordinator.runtime.timeline import SnapshotRegistry
    from odradek.protocol.coordinator_records.streams_groups import (
        StreamsGroupMetadataValue,
        StreamsGroupTargetAssignmentMemberValue,
        StreamsGroupTopologyKey,
        StreamsGroupTopologyValue,
    )

GROUP_TYPE: Final = "streams"
# No plugin has a description of the topology (KIP-1331).
_NOT_DESCRIBED: Final = (-1, -1)


class TaskOffsets(NamedTuple):
    """The offsets a member last reported, by subtopology and partition: of the state on its disk, and of the changelogs' ends."""

    offsets: Mapping[str, Mapping[int, int]]
    end_offsets: Mapping[str, Mapping[int, int]]


NO_OFFSETS: Final = TaskOffsets({}, {})


class StreamsGroup(ModernGroup[StreamsGroupMember, MemberTasks]):
    """The state of one streams group. Loop thread only.

    Mappings: ``members`` by id, ``static_members`` from instance id to member id, ``targets`` from member id to its target; from
    task to member ids, ``active_holders``, ``standby_holders`` and ``warmup_holders``. ``basis`` is a part of the group's own
    record. ``topic_name`` finds the name of a topic.
    """

    __slots__ = (
        "active_holders",
        "basis",
        "configured",
        "endpoint_epoch",
        "shutdown_member_id",
        "standby_holders",
        "static_members",
        "task_offsets",
        "topic_name",
        "topology",
        "warmup_holders",
    )

    def __init__(self, snapshots: SnapshotRegistry, group_id: str, topic_name: Callable[[UUID], str | None]) -> None:
        super().__init__(GROUP_TYPE, snapshots, group_id)
        self.topic_name: Final = topic_name
        self.static_members: TimelineDict[str, str] = TimelineDict(snapshots)
        self.active_holders: TimelineDict[Task, str] = TimelineDict(snapshots)
        self.standby_holders: TimelineDict[Task, frozenset[str]] = TimelineDict(snapshots)
        self.warmup_holders: TimelineDict[Task, frozenset[str]] = TimelineDict(snapshots)
        self.topology: TimelineValue[StreamsTopology | None] = TimelineValue(snapshots, None)
        self.basis: TimelineValue[AssignmentBasis] = TimelineValue(snapshots, AssignmentBasis(NO_EPOCH, {}, _NOT_DESCRIBED))
        self.configured: ConfiguredTopology | None = None
        self.task_offsets: dict[str, TaskOffsets] = {}
        self.shutdown_member_id: str | None = None
        self.endpoint_epoch = 0

    # ---------------------------------------------------------------------------------------------------------- state

    def target_of(self, member_id: str, instance_id: str | None) -> MemberTasks:
        """Return a member's target, or the target of the static member it replaces."""
        previous = None if instance_id is None else self.static_members.get(instance_id)
        return self.targets.get(member_id if previous is None else previous) or NO_TASKS

    def active_process(self, task: Task) -> str | None:
        """Return the process that has an active task; None if no process has it."""
        holder = self.active_holders.get(task)
        return None if holder is None else self._process_of(holder)

    def standby_processes(self, task: Task) -> AbstractSet[str]:
        """Return the processes that have a standby of a task."""
        return {self._process_of(holder) for holder in self.standby_holders.get(task) or ()}

    def warmup_processes(self, task: Task) -> AbstractSet[str]:
        """Return the processes that warm a task up."""
        return {self._process_of(holder) for holder in self.warmup_holders.get(task) or ()}

    def _process_of(self, member_id: str) -> str:
        member = self.members.get(member_id)
        return "" if member is None else member.process_id or ""

    def state_at(self, at_offset: int) -> StreamsGroupState:
        """Return the state at an offset of the log."""
        members = [member for _, member in self.members.items_at(at_offset)]
        is_ready = _is_ready(self.topology.get_at(at_offset), self.basis.get_at(at_offset))
        return _state(self.epoch.get_at(at_offset), self.target_metadata.get_at(at_offset)[0], members, is_ready=is_ready)

    def depends_on(self, topic: str) -> bool:
        """Return whether the topology has the topic, as a source or as an internal topic."""
        topology = self.topology.get()
        return topology is not None and topic in topology.required_topics

    # --------------------------------------------------------------------------------------------- part of interface.Group

    @property
    def state(self) -> str:
        """Return the name of the group's state."""
        is_ready = _is_ready(self.topology.get(), self.basis.get())
        return _state(self.epoch.get(), self.assignment_epoch, self.members.values(), is_ready=is_ready).value

    def permits_late_commit(self, member_id: str, generation: int, partitions: Iterable[tuple[UUID | None, int]]) -> bool:
        """Return whether the member has had the tasks of all partitions since ``generation``."""
        member = self.members.get(member_id)
        topology = self.topology.get()
        if member is None or topology is None or generation > member.member_epoch:
            return False
        for topic_id, index in partitions:
            name = None if topic_id is None else self.topic_name(topic_id)
            subtopology_id = None if name is None else topology.subtopology_of.get(name)
            epoch = None if subtopology_id is None else member.assignment_epoch(subtopology_id, index)
            if epoch is None or generation < epoch:
                return False
        return True

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether members read the topic."""
        topology = self.topology.get()
        return bool(self.members) and topology is not None and topic in topology.subtopology_of

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the records that delete the group."""
        return group_tombstones(self.group_id, list(self.members))

    # --------------------------------------------------------------------------------------------------------- replay

    def replay_epoch(self, value: StreamsGroupMetadataValue) -> None:
        """Set the group's epoch, and the rest of its own record."""
        super().replay_epoch(value)
        self.basis.set(
            AssignmentBasis(
                value.validated_topology_epoch,
                dict(value.last_assignment_configs or ()),
                (value.stored_description_topology_epoch, value.failed_description_topology_epoch),
            )
        )

    def target_of_record(self, value: StreamsGroupTargetAssignmentMemberValue) -> MemberTasks:
        """Return the target assignment of a record."""
        active, standby, warmup = (
            {subtopology: frozenset(partitions) for subtopology, partitions in tasks}
            for tasks in (value.active_tasks, value.standby_tasks, value.warmup_tasks)
        )
        return MemberTasks(active, standby, warmup)

    def replay_other(self, key: StreamsGroupTopologyKey, value: StreamsGroupTopologyValue | None) -> None:  # noqa: ARG002  one key
        """Set or remove the topology."""
        self.topology.set(None if value is None else StreamsTopology(value))

    def replay_member(self, member: StreamsGroupMember) -> None:
        """Add or update a member."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if old is None or _holding(old) != _holding(member):
            if old is not None:
                self._release(old)
            self._hold(member)
        if old is not None and old.instance_id is not None and old.instance_id != member.instance_id:
            self.static_members.pop(old.instance_id)
        if member.instance_id is not None and self.static_members.get(member.instance_id) != member.member_id:
            self.static_members[member.instance_id] = member.member_id

    def replay_removed(self, member_id: str) -> None:
        """Remove a member."""
        old = self.members.pop(member_id)
        if old is None:
            return
        self._release(old)
        if old.instance_id is not None and self.static_members.get(old.instance_id) == member_id:
            del self.static_members[old.instance_id]
        self.task_offsets.pop(member_id, None)
        if not self.members:
            self.shutdown_member_id = None

    def _hold(self, member: StreamsGroupMember) -> None:
        for owned in (member.assigned, member.pending_revocation):
            for task in _tasks(owned.active):
                self.active_holders[task] = member.member_id
            for known, tasks in self._replicas(owned):
                for task in tasks:
                    known[task] = (known.get(task) or frozenset()) | {member.member_id}

    def _release(self, member: StreamsGroupMember) -> None:
        for owned in (member.assigned, member.pending_revocation):
            for task in _tasks(owned.active):
                if self.active_holders.get(task) == member.member_id:
                    self.active_holders.pop(task)
            for known, tasks in self._replicas(owned):
                for task in tasks:
                    left = (known.get(task) or frozenset()) - {member.member_id}
                    if left:
                        known[task] = left
                    else:
                        known.pop(task)

    def _replicas(self, owned: OwnedTasks) -> list[tuple[TimelineDict[Task, frozenset[str]], list[Task]]]:
        return [(self.standby_holders, _tasks(owned.standby)), (self.warmup_holders, _tasks(owned.warmup))]

    def member_or_new(self, member_id: str) -> StreamsGroupMember:
        """Return the member, or a blank one before its first record."""
        return self.members.get(member_id) or StreamsGroupMember(member_id=member_id)


def _tasks(by_subtopology: Mapping[str, Iterable[int]]) -> list[Task]:
    return [(subtopology, index) for subtopology, partitions in by_subtopology.items() for index in partitions]


def _holding(member: StreamsGroupMember) -> tuple[OwnedTasks, OwnedTasks]:
    return member.assigned, member.pending_revocation


def _is_ready(topology: StreamsTopology | None, basis: AssignmentBasis) -> bool:
    return topology is not None and topology.epoch == basis.validated_topology_epoch


def _state(epoch: int, assignment_epoch: int, members: Iterable[StreamsGroupMember], *, is_ready: bool) -> StreamsGroupState:
    members = list(members)
    if not members:
        return StreamsGroupState.EMPTY
    if not is_ready:
        return StreamsGroupState.NOT_READY
    if epoch > assignment_epoch:
        return StreamsGroupState.ASSIGNING
    if all(member.is_reconciled_to(assignment_epoch) for member in members):
        return StreamsGroupState.STABLE
    return StreamsGroupState.RECONCILING
