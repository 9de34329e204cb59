"""The interface of a group, whatever its kind. Kafka's interface of this name.

Offsets, ListGroups, DescribeGroups, DeleteGroups and the metrics use only this interface. There are classic groups and consumer
groups (KIP-848).
"""

from collections.abc import Iterable
from typing import Final, Protocol
from uuid import UUID

from odradek.coordinator.runtime.result import CoordinatorRecord
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_groups import DescribedGroup

# Stands for a time: each offset expires by the time of its own commit.
SINCE_COMMIT: Final = -1


class Group(Protocol):
    """A group as it is now. Loop thread only."""

    group_id: str

    @property
    def group_type(self) -> str:
        """Return the kind of the group, as ListGroups names it: ``classic`` or ``consumer``."""

    @property
    def state(self) -> str:
        """Return the state of the group, under Kafka's name."""

    @property
    def protocol_type(self) -> str | None:
        """Return the type of the members' protocol; None if no member has joined."""

    @property
    def is_empty(self) -> bool:
        """Return whether the group has no members, and none is joining."""

    @property
    def member_count(self) -> int:
        """Return the number of members."""

    def describe(self) -> DescribedGroup | None:
        """Return the group for DescribeGroups; None for a kind with a describing API of its own."""

    def validate_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, is_transactional: bool, version: int
    ) -> ErrorCode:
        """Return the error that forbids a member, or for generation -1 any client, to commit offsets; else NONE.

        ``version`` is the request's version.
        """

    def permits_late_commit(self, member_id: str, generation: int, partitions: Iterable[tuple[UUID | None, int]]) -> bool:
        """Return whether a commit with a wrong generation is accepted for these partitions all the same."""

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int, at_offset: int) -> ErrorCode:
        """Return the error that forbids a member, or for epoch -1 any client, to fetch offsets; else NONE.

        The members are those at ``at_offset`` of the log.
        """

    def validate_offset_delete(self) -> ErrorCode:
        """Return NON_EMPTY_GROUP if members may read any topic, so that no offset can be deleted; else NONE."""

    def validate_delete(self) -> ErrorCode:
        """Return NON_EMPTY_GROUP for a group with members; else NONE."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member reads ``topic``."""

    def offsets_expire_since_ms(self) -> int | None:
        """Return since when (wall time) unsubscribed offsets are unused; SINCE_COMMIT, or None if they never expire."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the records that delete the group, without its offsets."""


class GroupKind(Protocol):
    """The owner of all groups of one kind in a shard, as the registry knows it."""

    def restore(self, group_id: str, value: object) -> Group:
        """Return the live group of ``value``, the stored form of this kind. Its members' sessions begin now."""

    def view(self, group_id: str, value: object) -> Group:
        """Return the group of ``value`` to be read only: no session begins."""

    def note_alive(self, group: Group, member_id: str) -> None:
        """Note that a member of ``group``, which is of this kind, has committed offsets. The member may not exist."""
