"""A member of a share group, its form in records, and the records that operations on such groups write."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from odradek.coordinator.group.consumer.member import LEAVE_EPOCH, MemberState, Partitions, state_of
from odradek.coordinator.group.modern_group import RecordKeys
from odradek.coordinator.runtime.result import CoordinatorRecord
from odradek.protocol.coordinator_records.share_groups import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    SharePartitions,
)

KEYS: Final = RecordKeys(
    ShareGroupMetadataKey,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupMemberMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupCurrentMemberAssignmentKey,
)


class ShareGroupState(StrEnum):
    """The state of a group, under Kafka's name."""

    EMPTY = "Empty"
    STABLE = "Stable"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMember:
    """A member, as its records describe it."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    assigned: Partitions = field(default_factory=dict)

    @property
    def revocation_timeout_ms(self) -> int | None:
        """Return None: members share partitions, and give none up to others."""
        return None

    def with_metadata(self, value: ShareGroupMemberMetadataValue) -> "ShareGroupMember":
        """Return the member updated from its record of kind 10."""
        return replace(
            self,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=frozenset(value.subscribed_topic_names),
        )

    def with_assignment(self, value: ShareGroupCurrentMemberAssignmentValue) -> "ShareGroupMember":
        """Return the member updated from its record of kind 14."""
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=state_of(value.state),
            assigned=with_sets(value.assigned_partitions),
        )

    def without_assignment(self) -> "ShareGroupMember":
        """Return the member after the tombstone of its record of kind 14: it leaves."""
        return replace(self, member_epoch=LEAVE_EPOCH, previous_member_epoch=LEAVE_EPOCH, assigned=NOTHING)


NOTHING: Final[Partitions] = {}


def with_sets(partitions: tuple[SharePartitions, ...]) -> Partitions:
    """Return the partitions of a record by topic id."""
    return {topic_id: frozenset(indexes) for topic_id, indexes in partitions}


def _stored(partitions: Partitions) -> tuple[SharePartitions, ...]:
    return tuple(SharePartitions(topic_id, tuple(sorted(partitions[topic_id]))) for topic_id in sorted(partitions))


def member_record(group_id: str, member: ShareGroupMember) -> CoordinatorRecord:
    """Return the record of a member's own metadata."""
    value = ShareGroupMemberMetadataValue(
        member.rack_id, member.client_id, member.client_host, tuple(sorted(member.subscribed_topic_names))
    )
    return CoordinatorRecord(ShareGroupMemberMetadataKey(group_id, member.member_id), value)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Return the record of the group's epoch."""
    return CoordinatorRecord(ShareGroupMetadataKey(group_id), ShareGroupMetadataValue(epoch, metadata_hash))


def target_record(group_id: str, member_id: str, target: Partitions) -> CoordinatorRecord:
    """Return the record of a member's target assignment."""
    key = ShareGroupTargetAssignmentMemberKey(group_id, member_id)
    return CoordinatorRecord(key, ShareGroupTargetAssignmentMemberValue(_stored(target)))


def target_metadata_record(group_id: str, epoch: int, now_ms: int) -> CoordinatorRecord:
    """Return the record of the target assignment's epoch and time."""
    key = ShareGroupTargetAssignmentMetadataKey(group_id)
    return CoordinatorRecord(key, ShareGroupTargetAssignmentMetadataValue(epoch, now_ms))


def assignment_record(group_id: str, member: ShareGroupMember) -> CoordinatorRecord:
    """Return the record of a member's current assignment."""
    value = ShareGroupCurrentMemberAssignmentValue(
        member.member_epoch, member.previous_member_epoch, int(member.state), _stored(member.assigned)
    )
    return CoordinatorRecord(ShareGroupCurrentMemberAssignmentKey(group_id, member.member_id), value)


def state_partitions_record(group_id: str, value: ShareGroupStatePartitionMetadataValue | None) -> CoordinatorRecord:
    """Return the record of the partitions whose share state is being initialized, initialized or deleted."""
    return CoordinatorRecord(ShareGroupStatePartitionMetadataKey(group_id), value)


def group_tombstones(group_id: str, member_ids: list[str]) -> list[CoordinatorRecord]:
    """Return the records that delete a group. Replay depends on their order."""
    return [
        *KEYS.group_tombstones(group_id, member_ids),
        state_partitions_record(group_id, None),
        CoordinatorRecord(ShareGroupMetadataKey(group_id), None),
    ]
