"""The records that operations on consumer groups write."""

from odradek.coordinator.group.consumer.member import ConsumerMember, OwnedEpochs, Partitions
from odradek.coordinator.runtime.record import CoordinatorRecord
from odradek.protocol.coordinator_records.consumer_groups import (
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


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Return the records that remove a member. Replay depends on their order."""
    return [
        CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), None),
        CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id, member_id), None),
    ]


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Return the tombstone of a record kind that Kafka wrote before 4.1."""
    return CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id), None)


def group_tombstones(group_id: str, member_ids: list[str], regexes: list[str]) -> list[CoordinatorRecord]:
    """Return the records that delete a group. Replay depends on their order."""
    return [
        *(CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id, each), None) for each in member_ids),
        *(CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(group_id, each), None) for each in member_ids),
        CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id), None),
        *(CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id, each), None) for each in member_ids),
        *(regex_tombstone(group_id, each) for each in regexes),
        partition_metadata_tombstone(group_id),
        CoordinatorRecord(ConsumerGroupMetadataKey(group_id), None),
    ]
