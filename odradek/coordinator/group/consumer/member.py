"""A member of a consumer group: its states, its form in records, and all records that operations on such groups write.

The states are Kafka's ``ConsumerGroupState`` and ``MemberState``.

A group's state follows from its members:

    Empty         no members
    Assigning     the target assignment is older than the group's epoch
    Reconciling   some member has not reached its target
    Stable        all members have reached their target

A member's heartbeats may bring it from any state to any other. UNKNOWN is a state in the record of a newer Kafka.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import Final, TypeAlias
from uuid import UUID

from odradek.coordinator.group.modern_group import RecordKeys
from odradek.coordinator.runtime.result import CoordinatorRecord
from odradek.protocol.coordinator_records.consumer_groups import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    OwnedPartitions,
    TargetPartitions,
)

KEYS: Final = RecordKeys(
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupCurrentMemberAssignmentKey,
)


class ConsumerGroupState(StrEnum):
    """The state of a group, under Kafka's name."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class MemberState(IntEnum):
    """The state of a member, by the number in its record.

    STABLE: it has its target, or has not been told of a newer one. UNREVOKED_PARTITIONS: it must give up partitions first.
    UNRELEASED_PARTITIONS: it waits for partitions that other members have yet to give up.
    """

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


_KNOWN: Final = frozenset({MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS})
TRANSITIONS: Final[dict[MemberState, frozenset[MemberState]]] = dict.fromkeys(MemberState, _KNOWN)


class IllegalTransition(ValueError):
    """A transition between member states that the table does not permit."""


def check_transition(member_id: str, old: MemberState, new: MemberState) -> None:
    """Raise IllegalTransition unless the table permits the transition."""
    if new not in TRANSITIONS[old]:
        raise IllegalTransition(f"member {member_id} cannot go from {old.name} to {new.name}")


def state_of(number: int) -> MemberState:
    """Return the state of a record's number; UNKNOWN if only a newer Kafka knows it."""
    try:
        return MemberState(number)
    except ValueError:
        return MemberState.UNKNOWN


# The epochs that a leaving member sends: for good, or, with an instance id, for a while.
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2

# Partitions by topic id.
Partitions: TypeAlias = Mapping[UUID, frozenset[int]]
# Partitions by topic id, each with the epoch in which it was assigned.
OwnedEpochs: TypeAlias = Mapping[UUID, Mapping[int, int]]

NOTHING: Final[dict[UUID, frozenset[int]]] = {}
NOTHING_OWNED: Final[dict[UUID, Mapping[int, int]]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """A member, as its records describe it.

    ``assigned`` holds the partitions the member may have, ``pending_revocation`` those it has been told to give up. An empty
    ``subscribed_topic_regex`` means none; records of other writers may use None.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: OwnedEpochs = field(default_factory=dict)
    pending_revocation: OwnedEpochs = field(default_factory=dict)
    classic: ClassicMemberMetadata | None = None

    @property
    def revocation_timeout_ms(self) -> int | None:
        """Return the time limit for the partitions to give up. A classic member has those of its JoinGroup and SyncGroup."""
        has_limit = self.state is MemberState.UNREVOKED_PARTITIONS and self.classic is None
        return self.rebalance_timeout_ms if has_limit else None

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Return whether the member has reached the target assignment of that epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def held(self) -> dict[UUID, frozenset[int]]:
        """Return the partitions that the member may have, and those that it has yet to give up."""
        found = without_epochs(self.assigned)
        for topic_id, indexes in self.pending_revocation.items():
            found[topic_id] = found.get(topic_id, frozenset()).union(indexes)
        return found

    def assignment_epoch(self, topic_id: UUID | None, partition: int) -> int | None:
        """Return the epoch in which a partition was assigned to the member; None if it does not have the partition."""
        if topic_id is None:
            return None
        for owned in (self.assigned, self.pending_revocation):
            epoch = owned.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> "ConsumerMember":
        """Return the member updated from its record of kind 5."""
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=frozenset(value.subscribed_topic_names),
            subscribed_topic_regex=value.subscribed_topic_regex,
            server_assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> "ConsumerMember":
        """Return the member updated from its record of kind 8."""
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=state_of(value.state),
            assigned=_epochs(value.assigned_partitions, value.member_epoch),
            pending_revocation=_epochs(value.partitions_pending_revocation, value.member_epoch),
        )

    def without_assignment(self) -> "ConsumerMember":
        """Return the member after the tombstone of its record of kind 8: it leaves."""
        return replace(self, member_epoch=LEAVE_EPOCH, previous_member_epoch=LEAVE_EPOCH, assigned={}, pending_revocation={})


def without_epochs(owned: OwnedEpochs) -> dict[UUID, frozenset[int]]:
    """Return the partitions without their epochs."""
    return {topic_id: frozenset(partitions) for topic_id, partitions in owned.items()}


def _epochs(owned: Sequence[OwnedPartitions], member_epoch: int) -> dict[UUID, dict[int, int]]:
    """Group partitions and epochs by topic id. If the record has no epochs, use the member's epoch, as Kafka does."""
    found = {}
    for topic_id, partitions, epochs in owned:
        if epochs is not None and len(epochs) == len(partitions):
            found[topic_id] = dict(zip(partitions, epochs, strict=True))
        else:
            found[topic_id] = dict.fromkeys(partitions, max(member_epoch, 0))
    return found


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Return the record of the group's epoch."""
    return CoordinatorRecord(ConsumerGroupMetadataKey(group_id), ConsumerGroupMetadataValue(epoch, metadata_hash))


def member_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """Return the record of a member's own metadata."""
    value = ConsumerGroupMemberMetadataValue(
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        tuple(sorted(member.subscribed_topic_names)),
        member.subscribed_topic_regex,
        member.rebalance_timeout_ms,
        member.server_assignor,
        member.classic,
    )
    return CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id, member.member_id), value)


def target_record(group_id: str, member_id: str, target: Partitions) -> CoordinatorRecord:
    """Return the record of a member's target assignment."""
    partitions = tuple(TargetPartitions(topic_id, tuple(sorted(target[topic_id]))) for topic_id in sorted(target))
    return CoordinatorRecord(
        ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), ConsumerGroupTargetAssignmentMemberValue(partitions)
    )


def target_metadata_record(group_id: str, epoch: int, now_ms: int) -> CoordinatorRecord:
    """Return the record of the target assignment's epoch and time."""
    return CoordinatorRecord(
        ConsumerGroupTargetAssignmentMetadataKey(group_id), ConsumerGroupTargetAssignmentMetadataValue(epoch, now_ms)
    )


def assignment_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """Return the record of a member's current assignment."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member.member_epoch,
        member.previous_member_epoch,
        int(member.state),
        _owned(member.assigned),
        _owned(member.pending_revocation),
    )
    return CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id), value)


def _owned(owned: OwnedEpochs) -> tuple[OwnedPartitions, ...]:
    found = []
    for topic_id in sorted(owned):
        pairs = sorted(owned[topic_id].items())
        found.append(OwnedPartitions(topic_id, tuple(index for index, _ in pairs), tuple(epoch for _, epoch in pairs)))
    return tuple(found)


def regex_record(group_id: str, regex: str, value: ConsumerGroupRegularExpressionValue) -> CoordinatorRecord:
    """Return the record of the topics that match a regular expression."""
    return CoordinatorRecord(ConsumerGroupRegularExpressionKey(group_id, regex), value)


def regex_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    """Return the tombstone of a regular expression without subscribers."""
    return CoordinatorRecord(ConsumerGroupRegularExpressionKey(group_id, regex), None)


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Return the tombstone of a record kind that Kafka wrote before 4.1."""
    return CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id), None)


def group_tombstones(group_id: str, member_ids: list[str], regexes: list[str]) -> list[CoordinatorRecord]:
    """Return the records that delete a group. Replay depends on their order."""
    return [
        *KEYS.group_tombstones(group_id, member_ids),
        *(regex_tombstone(group_id, each) for each in regexes),
        partition_metadata_tombstone(group_id),
        CoordinatorRecord(ConsumerGroupMetadataKey(group_id), None),
    ]
