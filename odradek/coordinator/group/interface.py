"""The interface of a group, whatever its kind. Kafka's interface of this name.

Offsets, ListGroups, DescribeGroups, DeleteGroups and the metrics know groups by this interface alone. There are classic
groups and consumer groups (KIP-848).
"""

from collections.abc import Iterable
from typing import Final, Protocol
from uuid import UUID

from odradek.coordinator.runtime.record import CoordinatorRecord
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_groups import DescribedGroup

# In place of a time: each offset expires by the time of its own commit.
SINCE_COMMIT: Final = -1


class Group(Protocol):
    """A group as it is now. Loop thread only."""

    group_id: str

    @property
    def group_type(self) -> str:
        """The kind of the group, as ListGroups names it: ``classic`` or ``consumer``."""

    @property
    def state(self) -> str:
        """The state of the group, as Kafka names it."""

    @property
    def protocol_type(self) -> str | None:
        """The type of the protocol that the members speak, None where nobody has joined."""

    @property
    def is_empty(self) -> bool:
        """Return whether the group has no members, and none is joining."""

    @property
    def member_count(self) -> int:
        """The number of members."""

    def describe(self) -> DescribedGroup | None:
        """The group and its members as DescribeGroups shows them; None for a kind that has a describing API of its own."""

    def validate_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, is_transactional: bool, version: int
    ) -> ErrorCode:
        """The error that keeps a member, or for generation -1 anybody, from committing offsets; NONE if there is none.

        ``version`` is that of the request.
        """

    def permits_late_commit(self, member_id: str, generation: int, partitions: Iterable[tuple[UUID | None, int]]) -> bool:
        """Return whether a commit that the generation alone keeps from being taken is taken for just these partitions."""

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """The error that keeps a member, or for epoch -1 anybody, from fetching offsets; NONE if there is none."""

    def validate_offset_delete(self) -> ErrorCode:
        """NON_EMPTY_GROUP where members may read any topic, so that none of their offsets can be deleted."""

    def validate_delete(self) -> ErrorCode:
        """NON_EMPTY_GROUP for a group with members."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member reads ``topic``."""

    def offsets_expire_since_ms(self) -> int | None:
        """Since when offsets without a subscription are unused, wall time; SINCE_COMMIT, or None where they do not expire."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that delete the group, its offsets apart."""


class GroupKind(Protocol):
    """The owner of all groups of one kind in a shard, as the registry knows it."""

    def restore(self, group_id: str, value: object) -> Group:
        """The live group of ``value``, the stored form of this kind. The sessions of its members begin now."""

    def note_alive(self, group: Group, member_id: str) -> None:
        """A member of ``group`` has committed offsets. ``group`` is of this kind; the member may not exist."""
