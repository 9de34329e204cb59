"""The records of one partition's groups, of either protocol, and whether each may follow the ones before.

a partition is among what one member has, or has yet to give up; it is another's only after a record that releases it
the epoch of a member never goes back, but when a static member leaves for a while and comes back
the epoch of a group never goes back, nor does that of its target assignment, nor either when the protocol changes
a consumer group with members does not vanish
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.consumer.member import LEAVE_STATIC_EPOCH
from odradek.coordinator.runtime.record import decode_group_record
from odradek.protocol.coordinator_records import GroupMetadataKey
from odradek.protocol.coordinator_records.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

EPOCHS = "epochs never go back"
RELEASED = "no partition is given out before it is released"
KEPT = "a consumer group with members does not vanish"
_OF_OFFSETS = (b"\0\0", b"\0\1")


class Records:
    """What the log says of one group. ``epoch`` is None where there is no consumer group, ``classic`` where no classic one is."""

    __slots__ = ("assignments", "classic", "epoch", "members", "target_epoch")

    def __init__(self) -> None:
        self.epoch: int | None = None
        self.target_epoch = -1
        # By member id: the records of kind 5 and 8.
        self.members: dict[str, Any] = {}
        self.assignments: dict[str, Any] = {}
        self.classic: Any = None

    @property
    def state(self) -> tuple[str, int, bool]:
        """The protocol, empty for no group; epoch or generation; whether there are members."""
        if self.epoch is not None:
            return "consumer", self.epoch, bool(self.members)
        if self.classic is not None:
            return "classic", self.classic.generation, bool(self.classic.members)
        return "", 0, False


class ConsumerGroupHistory:
    """``groups`` by id."""

    def __init__(self, *, is_checked: bool = True) -> None:
        self.groups: dict[str, Records] = {}
        self._is_checked = is_checked
        # Of the groups whose records are in the present batch: their state before it, and whether they were deleted in it.
        self._before: dict[str, tuple[str, int, bool]] = {}
        self._deleted: set[str] = set()
        # By group, member and epoch, the offset of the first record that takes the member there.
        self._reached: dict[tuple[str, str, int], int] = {}

    def note(self, offset: int, key: bytes, value: bytes | None) -> None:
        """A record is appended. Raises Violation."""
        if key[:2] in _OF_OFFSETS:
            return
        record = decode_group_record(key, value)
        if record is None:
            raise Violation("what is written can be read", f"{key!r}")
        group_id = record.key.group  # type: ignore[union-attr]  # none of a transaction
        group = self.groups.setdefault(group_id, Records())
        self._before.setdefault(group_id, group.state)
        self._apply(offset, group_id, group, record.key, record.value)
        if (
            record.value is not None
            and isinstance(record.key, ConsumerGroupMetadataKey | GroupMetadataKey)
            and not group.state[2]
        ):
            # Whatever follows in this batch finds a group without members.
            self._before[group_id] = group.state

    def _apply(self, offset: int, group_id: str, group: Records, key: Any, value: Any) -> None:
        if isinstance(key, ConsumerGroupCurrentMemberAssignmentKey):
            if value is None:
                group.assignments.pop(key.member_id, None)
            else:
                self._note_assignment(offset, group_id, group, key.member_id, value)
        elif isinstance(key, ConsumerGroupMemberMetadataKey):
            if value is None:
                group.members.pop(key.member_id, None)
            else:
                group.members[key.member_id] = value
        elif isinstance(key, ConsumerGroupMetadataKey):
            group.epoch = None if value is None else value.epoch
            if value is None:
                self._deleted.add(group_id)
                group.target_epoch = -1
        elif isinstance(key, ConsumerGroupTargetAssignmentMetadataKey):
            epoch = -1 if value is None else value.assignment_epoch
            if self._is_checked and value is not None and epoch < group.target_epoch:
                raise Violation(EPOCHS, f"{group_id}: the assignment's is {epoch} after {group.target_epoch}")
            group.target_epoch = epoch
        elif isinstance(key, GroupMetadataKey):
            group.classic = value
            if value is None:
                self._deleted.add(group_id)

    def _note_assignment(self, offset: int, group_id: str, group: Records, member_id: str, value: Any) -> None:
        known = group.assignments.get(member_id)
        if self._is_checked:
            is_compared = known is not None and LEAVE_STATIC_EPOCH not in (known.member_epoch, value.member_epoch)
            if is_compared and value.member_epoch < known.member_epoch:
                raise Violation(EPOCHS, f"{group_id}: {member_id} is in {value.member_epoch} after {known.member_epoch}")
            mine = set(held_by(value))
            for other_id, other in group.assignments.items():
                if other_id != member_id and not mine.isdisjoint(held_by(other)):
                    raise Violation(RELEASED, f"{group_id}: {member_id} is given {value}, and {other_id} has {other}")
        group.assignments[member_id] = value
        self._reached.setdefault((group_id, member_id, value.member_epoch), offset)

    def end_batch(self) -> None:
        """All records of a batch are noted. Raises Violation."""
        for group_id, (protocol, number, had_members) in self._before.items():
            now, now_number, has_members = self.groups[group_id].state
            what = f"{group_id} was {protocol} in {number}, and is {now or 'not there'} in {now_number}"
            # A classic group that could not be written when it became empty is deleted, or replaced, as one with members.
            if protocol == "consumer" and had_members and not now and self._is_checked:
                raise Violation(KEPT, what)
            is_compared = group_id not in self._deleted
            if protocol != now:
                is_compared = had_members and has_members and (protocol == "consumer" or self._has_classic_members(group_id))
            # A classic group may go from the last generation to the first, which takes longer than a history.
            if self._is_checked and protocol and now and is_compared and now_number < number:
                raise Violation(EPOCHS, what)
        self._before.clear()
        self._deleted.clear()

    def _has_classic_members(self, group_id: str) -> bool:
        return any(each.classic is not None for each in self.groups[group_id].members.values())

    def without(self, end_offset: int, records: Iterable[tuple[int, bytes, bytes | None]]) -> ConsumerGroupHistory:
        """The history of these records, which may be compacted, so that it is known who has what, and not in which order."""
        history = ConsumerGroupHistory(is_checked=False)
        for record in records:
            history.note(*record)
        history.end_batch()
        history._reached = {**history._reached, **{key: each for key, each in self._reached.items() if each < end_offset}}
        history._is_checked = True
        return history

    def find(self, group_id: str) -> Records:
        """What there is of a group."""
        return self.groups.get(group_id) or Records()

    def is_reached(self, group_id: str, member_id: str, epoch: int, high_watermark: int) -> bool:
        """Whether a record that is committed says that the member is, or was, in the epoch."""
        offset = self._reached.get((group_id, member_id, epoch))
        return offset is not None and offset < high_watermark


def held_by(value: Any) -> Iterator[tuple[UUID, int]]:
    """The partitions that a member has by its record of kind 8, those it has yet to give up included."""
    for owned in (value.assigned_partitions, value.partitions_pending_revocation):
        for topic_id, indexes, _ in owned:
            for index in indexes:
                yield topic_id, index
