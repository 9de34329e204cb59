"""What offsets, and requests about any kind of group, know of a group. Kafka's interface of this name.

A classic group is the one kind there is; consumer groups (KIP-848) would be another. Left out: DescribeGroups, which is about
classic groups, and OffsetFetch, which a classic group never refuses.
"""

from collections.abc import Iterable
from typing import Final, Protocol

from odradek.coordinator.runtime.record import CoordinatorRecord
from odradek.protocol.errors import ErrorCode

# In place of a time: each offset expires by the time of its own commit.
SINCE_COMMIT: Final = -1


class Group(Protocol):
    """A group as it is now. Loop thread only."""

    group_id: str

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, and none is joining."""

    def validate_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, is_transactional: bool
    ) -> ErrorCode:
        """What keeps a member, or for generation -1 anybody, from committing offsets; NONE for nothing."""

    def validate_offset_delete(self) -> ErrorCode:
        """NON_EMPTY_GROUP where members may read any topic, so that none of their offsets can be deleted."""

    def validate_delete(self) -> ErrorCode:
        """NON_EMPTY_GROUP for a group with members."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads ``topic``."""

    def offsets_expire_since_ms(self) -> int | None:
        """Since when offsets without a subscription are unused, wall time; SINCE_COMMIT, or None where they do not expire."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that delete the group, its offsets apart."""


class Groups(Protocol):
    """The one registry of a shard's groups, by id, of whatever kind."""

    def find(self, group_id: str) -> Group | None:
        """The group as it is now, or None."""

    def stored_ids(self) -> Iterable[str]:
        """The groups that the log has."""

    def note_alive(self, group_id: str, member_id: str) -> None:
        """A member has committed: its session begins anew. Nothing where there is no such member."""
