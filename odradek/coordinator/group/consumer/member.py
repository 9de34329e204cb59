"""A member of a consumer group, and its form in records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias
from uuid import UUID

from odradek.coordinator.group.consumer.states import MemberState, state_of
from odradek.protocol.coordinator_records.consumer_groups import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    OwnedPartitions,
)

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

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Return whether the member has reached the target assignment of that epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def is_revoking_in(self, epoch: int) -> bool:
        """Return whether the member is in that epoch, and has partitions to give up."""
        return self.state is MemberState.UNREVOKED_PARTITIONS and self.member_epoch == epoch

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
