"""The part that consumer, share and streams groups have in common: epochs, members, the target assignment, and their records.

Kafka's class is ModernGroup. Its streams groups are none, and have the same fields.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, NoReturn, Protocol, TypeVar

from odradek.coordinator.group.interface import SINCE_COMMIT
from odradek.coordinator.runtime.result import CoordinatorRecord
from odradek.coordinator.runtime.timeline import TimelineDict, TimelineValue
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.coordinator.runtime.timeline import SnapshotRegistry

# Both epochs of a new group, as in Kafka. The first member raises the group's epoch.
INITIAL_EPOCH: Final = 1
NO_EPOCH: Final = -1
# The first version of OffsetCommit that can be answered STALE_MEMBER_EPOCH.
_FIRST_COMMIT_VERSION: Final = 9


class ModernMember(Protocol):
    """A member, as its records describe it."""

    @property
    def member_id(self) -> str:
        """Return the member's id."""

    @property
    def member_epoch(self) -> int:
        """Return the epoch that the member has reached."""

    @property
    def revocation_timeout_ms(self) -> int | None:
        """Return the time limit, if there is one, for the member to give up what it must."""

    def with_metadata(self, value: Any) -> Any:  # noqa: ANN401  the record's type, and the member's
        """Return the member updated from the record of its own metadata."""

    def with_assignment(self, value: Any) -> Any:  # noqa: ANN401
        """Return the member updated from the record of its assignment."""

    def without_assignment(self) -> Any:  # noqa: ANN401
        """Return the member after the tombstone of that record: it leaves."""


MemberT = TypeVar("MemberT", bound=ModernMember)
TargetT = TypeVar("TargetT")


class RecordKeys(NamedTuple):
    """The classes of one kind's keys: of the group's epoch, of the target assignment's epoch, and of three records a member."""

    epoch: type[Any]
    target_epoch: type[Any]
    member: type[Any]
    target: type[Any]
    assignment: type[Any]

    def member_tombstones(self, group_id: str, member_id: str) -> list[CoordinatorRecord]:
        """Return the records that remove a member. Replay depends on their order."""
        return [CoordinatorRecord(key(group_id, member_id), None) for key in (self.assignment, self.target, self.member)]

    def group_tombstones(self, group_id: str, member_ids: list[str]) -> list[CoordinatorRecord]:
        """Return the first records that delete a group, in the order that replay needs. The other kinds follow."""
        return [
            *(CoordinatorRecord(self.assignment(group_id, each), None) for each in member_ids),
            *(CoordinatorRecord(self.target(group_id, each), None) for each in member_ids),
            CoordinatorRecord(self.target_epoch(group_id), None),
            *(CoordinatorRecord(self.member(group_id, each), None) for each in member_ids),
        ]


class ModernGroup(ABC, Generic[MemberT, TargetT]):
    """A group whose target assignment is computed by the coordinator. Loop thread only.

    ``members`` and ``targets`` map member ids to members and to target assignments. ``group_type`` is the type that ListGroups
    shows.
    """

    __slots__ = ("epoch", "fresh_epoch", "group_id", "group_type", "members", "metadata_hash", "target_metadata", "targets")

    def __init__(self, group_type: str, snapshots: SnapshotRegistry, group_id: str) -> None:
        self.group_type = group_type
        self.group_id = group_id
        self.epoch = TimelineValue(snapshots, INITIAL_EPOCH)
        self.metadata_hash = TimelineValue(snapshots, 0)
        # (epoch of the target assignment, time it was computed in ms since the epoch).
        self.target_metadata = TimelineValue(snapshots, (INITIAL_EPOCH, 0))
        self.members: TimelineDict[str, MemberT] = TimelineDict(snapshots)
        self.targets: TimelineDict[str, TargetT] = TimelineDict(snapshots)
        # The group's epoch when its topics' metadata was last read; None if it must be read again. Not persistent.
        self.fresh_epoch: int | None = None

    @property
    def assignment_epoch(self) -> int:
        """Return the epoch of the target assignment."""
        return self.target_metadata.get()[0]

    @property
    def is_stale(self) -> bool:
        """Return whether the topics' metadata must be read again: they changed, or a decision on them was rolled back."""
        return self.fresh_epoch is None or self.epoch.get() < self.fresh_epoch

    @property
    def protocol_type(self) -> str | None:
        """Return the group's type, also for a group without members, as in Kafka."""
        return self.group_type

    @property
    def is_empty(self) -> bool:
        """Return whether the group has no members."""
        return not self.members

    @property
    def member_count(self) -> int:
        """Return the number of members."""
        return len(self.members)

    def describe(self) -> None:
        """Return None: such groups have a describing API of their own."""

    def validate_delete(self) -> ErrorCode:
        """Return NON_EMPTY_GROUP while the group has members."""
        return ErrorCode.NON_EMPTY_GROUP if self.members else ErrorCode.NONE

    def validate_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, is_transactional: bool, version: int
    ) -> ErrorCode:
        """Return why the member may not commit; ``permits_late_commit`` may still allow it."""
        if generation < 0 and not self.members:
            return ErrorCode.NONE
        if is_transactional and generation == NO_EPOCH and not member_id and group_instance_id is None:
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = self.wrong_epoch_error(member)
        if not is_transactional and error is ErrorCode.STALE_MEMBER_EPOCH and version < _FIRST_COMMIT_VERSION:
            return ErrorCode.UNSUPPORTED_VERSION
        return ErrorCode.NONE if generation == member.member_epoch else error

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int, at_offset: int) -> ErrorCode:
        """Return why the member may not fetch offsets."""
        if member_id is None and member_epoch < 0:
            return ErrorCode.NONE
        member = None if member_id is None else self.members.get_at(member_id, at_offset)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member_epoch == member.member_epoch else self.wrong_epoch_error(member)

    def wrong_epoch_error(self, member: MemberT) -> ErrorCode:  # noqa: ARG002  consumer groups have members of two protocols
        """Return the error for a member that names another epoch than its own."""
        return ErrorCode.STALE_MEMBER_EPOCH

    def validate_offset_delete(self) -> ErrorCode:
        """Return NONE: the topics that members read are known."""
        return ErrorCode.NONE

    def offsets_expire_since_ms(self) -> int | None:
        """Return SINCE_COMMIT: the offsets of unread topics expire by their commits."""
        return SINCE_COMMIT

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member reads the topic."""

    def depends_on(self, topic: str) -> bool:
        """Return whether a change of the topic may change the target assignment."""
        return self.is_subscribed_to(topic)

    def __str__(self) -> str:
        return f"{self.group_type} group {self.group_id}"

    # --------------------------------------------------------------------------------------------------------- replay

    @abstractmethod
    def member_or_new(self, member_id: str) -> MemberT:
        """Return the member, or a blank one before its first record."""

    @abstractmethod
    def replay_member(self, member: MemberT) -> None:
        """Add or update a member."""

    @abstractmethod
    def replay_removed(self, member_id: str) -> None:
        """Remove a member."""

    @abstractmethod
    def target_of_record(self, value: Any) -> TargetT:  # noqa: ANN401  the record's type
        """Return the target assignment of a record."""

    @abstractmethod
    def replay_other(self, key: Any, value: Any) -> None:  # noqa: ANN401  the types of records of this kind of group alone
        """Apply a record, or a tombstone, that only this kind of group has."""

    def replay_epoch(self, value: Any) -> None:  # noqa: ANN401  the record's type
        """Set the group's epoch, and the rest of its own record."""
        self.epoch.set(value.epoch)
        self.metadata_hash.set(value.metadata_hash)

    def replay_target(self, member_id: str, target: TargetT | None) -> None:
        """Set or remove a member's target assignment."""
        if target is None:
            self.targets.pop(member_id)
        else:
            self.targets[member_id] = target

    def replay_target_epoch(self, value: Any) -> None:  # noqa: ANN401  the record's type
        """Set or remove the epoch of the target assignment."""
        found = (NO_EPOCH, 0) if value is None else (value.assignment_epoch, value.assignment_timestamp_ms)
        self.target_metadata.set(found)


def ensure_valid(condition: object, message: str) -> None:
    """Raise KafkaError(INVALID_REQUEST) unless a condition of the request's form holds."""
    if not condition:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def unknown_member(group: ModernGroup[Any, Any], member_id: str) -> NoReturn:
    """Raise KafkaError(UNKNOWN_MEMBER_ID)."""
    raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {group.group_id} has no member {member_id}")


def adjust_counts(counts: TimelineDict[str, int], old: frozenset[str | None], new: frozenset[str | None]) -> None:
    """Decrement the counts of names no longer present, increment those of new names."""
    if old is new or old == new:
        return
    for name in old - new:
        if name is not None:
            count = (counts.get(name) or 0) - 1
            if count > 0:
                counts[name] = count
            else:
                counts.pop(name)
    for name in new - old:
        if name is not None:
            counts[name] = (counts.get(name) or 0) + 1
