"""A member of a streams group: its states, its tasks, its form in records, and all records that operations on such groups write.

A group's state follows from its members and its topology:

    Empty         no members
    NotReady      the topology's topics are missing or do not fit
    Assigning     the target assignment is older than the group's epoch
    Reconciling   some member has not reached its target
    Stable        all members have reached their target

A member's heartbeats may bring it from any state to any other. UNKNOWN is a state in the record of a newer Kafka.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

from odradek.coordinator.group.assignor.streams_interface import MemberTasks, Tasks
from odradek.coordinator.group.consumer.member import LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from odradek.coordinator.group.modern_group import RecordKeys
from odradek.coordinator.runtime.result import CoordinatorRecord
from odradek.protocol.coordinator_records.streams_groups import (
    Endpoint,
    KeyValue,
    LastAssignmentConfig,
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
    TargetTaskIds,
    TaskIds,
)

KEYS: Final = RecordKeys(
    StreamsGroupMetadataKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupCurrentMemberAssignmentKey,
)


class StreamsGroupState(StrEnum):
    """The state of a group, under Kafka's name."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class MemberState(IntEnum):
    """The state of a member, by the number in its record.

    STABLE: it has its target, or has not been told of a newer one. UNREVOKED_TASKS: it must give up tasks first.
    UNRELEASED_TASKS: it waits for tasks that other members have yet to give up.
    """

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127


def state_of(number: int) -> MemberState:
    """Return the state of a record's number; UNKNOWN if only a newer Kafka knows it."""
    try:
        return MemberState(number)
    except ValueError:
        return MemberState.UNKNOWN


class OwnedTasks(NamedTuple):
    """The tasks of a member; active tasks with the epochs in which they were assigned. Kafka's class is TasksTupleWithEpochs."""

    active: Mapping[str, Mapping[int, int]]
    standby: Tasks
    warmup: Tasks

    def without_epochs(self) -> MemberTasks:
        """Return the tasks alone."""
        active = {subtopology: frozenset(partitions) for subtopology, partitions in self.active.items()}
        return MemberTasks(active, self.standby, self.warmup)


NO_TASKS: Final = MemberTasks({}, {}, {})
NOTHING_OWNED: Final = OwnedTasks({}, {}, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupMember:
    """A member, as its records describe it.

    ``assigned`` holds the tasks the member may have, ``pending_revocation`` those it has been told to give up. ``process_id`` is
    None as long as only the record of its tasks is known.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: tuple[tuple[str, str], ...] = ()
    assigned: OwnedTasks = NOTHING_OWNED
    pending_revocation: OwnedTasks = NOTHING_OWNED

    @property
    def revocation_timeout_ms(self) -> int | None:
        """Return the time limit, if there is one, for the member to give up tasks."""
        return self.rebalance_timeout_ms if self.state is MemberState.UNREVOKED_TASKS else None

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Return whether the member has reached the target assignment of that epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def assignment_epoch(self, subtopology_id: str, partition: int) -> int | None:
        """Return the epoch in which an active task was assigned to the member; None if it does not have the task."""
        for owned in (self.assigned, self.pending_revocation):
            epoch = owned.active.get(subtopology_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def with_metadata(self, value: StreamsGroupMemberMetadataValue) -> "StreamsGroupMember":
        """Return the member updated from its record of kind 19."""
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            user_endpoint=value.user_endpoint,
            client_tags=tuple(sorted((tag.key, tag.value) for tag in value.client_tags)),
        )

    def with_assignment(self, value: StreamsGroupCurrentMemberAssignmentValue) -> "StreamsGroupMember":
        """Return the member updated from its record of kind 22."""
        epoch = value.member_epoch
        revoked = value.active_tasks_pending_revocation
        return replace(
            self,
            member_epoch=epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=state_of(value.state),
            assigned=OwnedTasks(
                _with_epochs(value.active_tasks, epoch), _without_epochs(value.standby_tasks), _without_epochs(value.warmup_tasks)
            ),
            pending_revocation=OwnedTasks(
                _with_epochs(revoked, epoch),
                _without_epochs(value.standby_tasks_pending_revocation),
                _without_epochs(value.warmup_tasks_pending_revocation),
            ),
        )

    def without_assignment(self) -> "StreamsGroupMember":
        """Return the member after the tombstone of its record of kind 22: it leaves."""
        return replace(
            self,
            member_epoch=LEAVE_EPOCH,
            previous_member_epoch=LEAVE_EPOCH,
            assigned=NOTHING_OWNED,
            pending_revocation=NOTHING_OWNED,
        )

    def departed_for_a_while(self) -> "StreamsGroupMember":
        """Return a static member that will be back. It keeps its tasks, with assignment epochs reset to 0."""
        active = {subtopology: dict.fromkeys(partitions, 0) for subtopology, partitions in self.assigned.active.items()}
        return replace(
            self,
            member_epoch=LEAVE_STATIC_EPOCH,
            assigned=self.assigned._replace(active=active),
            pending_revocation=NOTHING_OWNED,
        )


def _with_epochs(tasks: Iterable[TaskIds], member_epoch: int) -> dict[str, Mapping[int, int]]:
    """Return active tasks by subtopology. If the record has no epochs, use the member's epoch, as Kafka does."""
    found: dict[str, Mapping[int, int]] = {}
    for subtopology, partitions, epochs in tasks:
        if epochs is not None and len(epochs) == len(partitions):
            found[subtopology] = dict(zip(partitions, epochs, strict=True))
        else:
            found[subtopology] = dict.fromkeys(partitions, member_epoch)
    return found


def _without_epochs(tasks: Iterable[TaskIds]) -> dict[str, frozenset[int]]:
    return {subtopology: frozenset(partitions) for subtopology, partitions, _ in tasks}


# --------------------------------------------------------------------------------------------------------------- records


def member_record(group_id: str, member: StreamsGroupMember) -> CoordinatorRecord:
    """Return the record of a member's own metadata."""
    value = StreamsGroupMemberMetadataValue(
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.topology_epoch,
        member.process_id or "",
        member.user_endpoint,
        tuple(KeyValue(*tag) for tag in member.client_tags),
    )
    return CoordinatorRecord(StreamsGroupMemberMetadataKey(group_id, member.member_id), value)


class AssignmentBasis(NamedTuple):
    """The part of a group's own record that the next assignment depends on.

    ``described`` are the topology epochs of a plugin's description, stored and refused; odradek has no plugin, and keeps them.
    """

    validated_topology_epoch: int
    configs: Mapping[str, str]
    described: tuple[int, int]


def epoch_record(group_id: str, epoch: int, metadata_hash: int, basis: AssignmentBasis) -> CoordinatorRecord:
    """Return the record of the group's epoch."""
    configs = tuple(LastAssignmentConfig(*each) for each in sorted(basis.configs.items()))
    value = StreamsGroupMetadataValue(epoch, metadata_hash, basis.validated_topology_epoch, configs, *basis.described)
    return CoordinatorRecord(StreamsGroupMetadataKey(group_id), value)


def topology_record(group_id: str, topology: StreamsGroupTopologyValue) -> CoordinatorRecord:
    """Return the record of the topology."""
    return CoordinatorRecord(StreamsGroupTopologyKey(group_id), topology)


def target_record(group_id: str, member_id: str, target: MemberTasks) -> CoordinatorRecord:
    """Return the record of a member's target assignment."""
    key = StreamsGroupTargetAssignmentMemberKey(group_id, member_id)
    active, standby, warmup = (
        tuple(TargetTaskIds(subtopology, tuple(sorted(tasks[subtopology]))) for subtopology in sorted(tasks)) for tasks in target
    )
    return CoordinatorRecord(key, StreamsGroupTargetAssignmentMemberValue(active, standby, warmup))


def target_metadata_record(group_id: str, epoch: int, computed_ms: int) -> CoordinatorRecord:
    """Return the record of the target assignment's epoch and time."""
    key = StreamsGroupTargetAssignmentMetadataKey(group_id)
    return CoordinatorRecord(key, StreamsGroupTargetAssignmentMetadataValue(epoch, computed_ms))


def assignment_record(group_id: str, member: StreamsGroupMember) -> CoordinatorRecord:
    """Return the record of a member's current assignment."""
    value = StreamsGroupCurrentMemberAssignmentValue(
        member.member_epoch,
        member.previous_member_epoch,
        int(member.state),
        *_stored(member.assigned),
        *_stored(member.pending_revocation),
    )
    return CoordinatorRecord(StreamsGroupCurrentMemberAssignmentKey(group_id, member.member_id), value)


def _stored(owned: OwnedTasks) -> tuple[tuple[TaskIds, ...], tuple[TaskIds, ...], tuple[TaskIds, ...]]:
    active = []
    for subtopology in sorted(owned.active):
        pairs = sorted(owned.active[subtopology].items())
        active.append(TaskIds(subtopology, tuple(each for each, _ in pairs), tuple(epoch for _, epoch in pairs)))
    standby, warmup = (
        tuple(TaskIds(subtopology, tuple(sorted(tasks[subtopology]))) for subtopology in sorted(tasks))
        for tasks in (owned.standby, owned.warmup)
    )
    return tuple(active), standby, warmup


def group_tombstones(group_id: str, member_ids: list[str]) -> list[CoordinatorRecord]:
    """Return the records that delete a group. Replay depends on their order."""
    return [
        *KEYS.group_tombstones(group_id, member_ids),
        CoordinatorRecord(StreamsGroupMetadataKey(group_id), None),
        CoordinatorRecord(StreamsGroupTopologyKey(group_id), None),
    ]
