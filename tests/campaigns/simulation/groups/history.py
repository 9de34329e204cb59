"""The records of one partition's groups, in order, and whether each may follow the ones before; and what members were told.

A partition, or an active task, is among what one member has, or has yet to give up; it is another's only after a record that
releases it. The epoch
of a member never goes back, but when a static member leaves for a while and comes back. The epoch of a group never goes back, nor
does that of its target assignment, nor either when the protocol changes. A consumer group with members does not vanish.

Generations only rise, from 2^31 - 1 on to 1, until a tombstone ends the group. A generation has one leader, one protocol and one
assignment, however often it is written, and whoever is told of it; its leader alone is given the members. Who is told of a
generation is among the members that its leader was given. Who is in it, its leader first, has joined it. An assignment that a
member is given is what the log has for it, committed. A static member counts as the same one under each of its member ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.classic.states import GroupState
from odradek.coordinator.group.consumer.member import LEAVE_STATIC_EPOCH
from odradek.coordinator.runtime.result import decode_group_record
from odradek.protocol.coordinator_records import GroupMetadataKey, GroupMetadataValue
from odradek.protocol.coordinator_records.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from odradek.protocol.coordinator_records.streams_groups import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTopologyKey,
)
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from odradek.coordinator.group.classic.group import ClassicGroup
    from tests.campaigns.simulation.groups.logs import SimulatedLog

_MAX_GENERATION = 2**31 - 1
_STATIC_PREFIX = "static"


def place_of(member_id: str) -> str:
    """The identity behind a member id: a static member's instance id, a dynamic member's own id."""
    return member_id.rpartition("-")[0] if member_id.startswith(_STATIC_PREFIX) else member_id


def follows(earlier: int, later: int) -> bool:
    """True if a group may go from the one generation to the other. A history has few generations in between."""
    return later > earlier or (later < 1_000_000 and earlier > _MAX_GENERATION - 1_000_000)


class Written:
    """One generation of a classic group as first written, at ``offset``."""

    __slots__ = ("assignments", "leader", "offset", "protocol")

    def __init__(self, offset: int, value: GroupMetadataValue) -> None:
        self.offset = offset
        self.protocol = value.protocol
        self.leader = None if value.leader is None else place_of(value.leader)
        self.assignments = {place_of(member.member_id): member.assignment for member in value.members}


EPOCHS = "epochs never go back"
RELEASED = "no partition is given out before it is released"
KEPT = "a consumer group with members does not vanish"
ONE_TOPOLOGY = "a streams group keeps its topology"
_OF_OFFSETS = (b"\0\0", b"\0\1")
# Records of consumer groups and of streams groups.
_EPOCHS_OF_GROUPS = (ConsumerGroupMetadataKey, StreamsGroupMetadataKey)
_EPOCHS_OF_TARGETS = (ConsumerGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataKey)
_MEMBERS = (ConsumerGroupMemberMetadataKey, StreamsGroupMemberMetadataKey)
_ASSIGNMENTS = (ConsumerGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentKey)


class Records:
    """The records of one group. ``classic`` is None where there is no classic group, ``epoch`` where there is no newer one."""

    __slots__ = ("assignments", "classic", "epoch", "members", "protocol", "target_epoch", "topology")

    def __init__(self) -> None:
        self.protocol = "consumer"
        self.epoch: int | None = None
        self.target_epoch = -1
        # By member id: the records of kinds 5 and 8, or 19 and 22.
        self.members: dict[str, Any] = {}
        self.assignments: dict[str, Any] = {}
        self.classic: Any = None
        self.topology: Any = None

    @property
    def state(self) -> tuple[str, int, bool]:
        """The protocol, empty for no group; epoch or generation; whether there are members."""
        if self.epoch is not None:
            return self.protocol, self.epoch, bool(self.members)
        if self.classic is not None:
            return "classic", self.classic.generation, bool(self.classic.members)
        return "", 0, False


class GroupHistory:
    """``groups`` by id, ``generations`` by group and number; those of a group that was deleted are forgotten."""

    def __init__(self, *, is_checked: bool = True) -> None:
        self.groups: dict[str, Records] = {}
        self.generations: dict[str, dict[int, Written]] = {}
        # Groups that were of the consumer protocol: the generation that a conversion makes is written anew by its rebalance.
        self._converted: set[str] = set()
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
        if record.value is not None and isinstance(record.key, (*_EPOCHS_OF_GROUPS, GroupMetadataKey)) and not group.state[2]:
            # The records behind it in this batch find a group without members.
            self._before[group_id] = group.state

    def _apply(self, offset: int, group_id: str, group: Records, key: Any, value: Any) -> None:
        if isinstance(key, _ASSIGNMENTS):
            if value is None:
                group.assignments.pop(key.member_id, None)
            else:
                self._note_assignment(offset, group_id, group, key.member_id, value)
        elif isinstance(key, _MEMBERS):
            if value is None:
                group.members.pop(key.member_id, None)
            else:
                group.members[key.member_id] = value
        elif isinstance(key, _EPOCHS_OF_GROUPS):
            group.epoch = None if value is None else value.epoch
            group.protocol = "streams" if isinstance(key, StreamsGroupMetadataKey) else "consumer"
            self._converted.add(group_id)
            if value is None:
                self._deleted.add(group_id)
                group.target_epoch = -1
        elif isinstance(key, _EPOCHS_OF_TARGETS):
            epoch = -1 if value is None else value.assignment_epoch
            if self._is_checked and value is not None and epoch < group.target_epoch:
                raise Violation(EPOCHS, f"{group_id}: the assignment's is {epoch} after {group.target_epoch}")
            group.target_epoch = epoch
        elif isinstance(key, StreamsGroupTopologyKey):
            if self._is_checked and None not in (value, group.topology) and value != group.topology:
                raise Violation(ONE_TOPOLOGY, f"{group_id} has {group.topology}, and then {value}")
            group.topology = value
        elif isinstance(key, GroupMetadataKey):
            before, group.classic = group.classic, value
            if value is None:
                self._deleted.add(group_id)
                self.generations.pop(group_id, None)
            else:
                self._note_generation(offset, group_id, before, value)

    def _note_generation(self, offset: int, group_id: str, before: GroupMetadataValue | None, value: GroupMetadataValue) -> None:
        generations = self.generations.setdefault(group_id, {})
        number = value.generation
        if before is not None and number != before.generation and not follows(before.generation, number):
            raise Violation("generations only grow", f"{group_id}: {number} is written after {before.generation}")
        written = Written(offset, value)
        if before is None or number != before.generation or group_id in self._converted:
            generations[number] = written
            return
        known = generations[number]
        for field in ("leader", "protocol", "assignments"):
            if getattr(known, field) != getattr(written, field):
                change = f"{field} {getattr(known, field)!r}, then {getattr(written, field)!r}"
                raise Violation("one assignment a generation", f"{group_id}, generation {number} is written with {change}")

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
            if protocol in ("consumer", "streams") and had_members and not now and self._is_checked:
                raise Violation(KEPT, what)
            is_compared = group_id not in self._deleted
            if protocol != now:
                is_compared = had_members and has_members and (protocol == "consumer" or self._has_classic_members(group_id))
            if self._is_checked and protocol and now and is_compared and now_number != number and not follows(number, now_number):
                raise Violation(EPOCHS, what)
        self._before.clear()
        self._deleted.clear()

    def _has_classic_members(self, group_id: str) -> bool:
        return any(each.classic_member_metadata is not None for each in self.groups[group_id].members.values())

    def without(self, end_offset: int, records: Iterable[tuple[int, bytes, bytes | None]]) -> GroupHistory:
        """The history of these records, which may be compacted, so that it is known who has what, and not in which order."""
        history = GroupHistory(is_checked=False)
        for record in records:
            history.note(*record)
        history.end_batch()
        history._reached = {**history._reached, **{key: each for key, each in self._reached.items() if each < end_offset}}
        history._is_checked = True
        return history

    def find(self, group_id: str) -> Records:
        """The history of a group."""
        return self.groups.get(group_id) or Records()

    def is_reached(self, group_id: str, member_id: str, epoch: int, high_watermark: int) -> bool:
        """True if a committed record says that the member is, or was, in the epoch."""
        offset = self._reached.get((group_id, member_id, epoch))
        return offset is not None and offset < high_watermark


def held_by(value: Any) -> Iterator[tuple[UUID | str, int]]:
    """The partitions or active tasks that a member has by its record, those it has yet to give up included."""
    if isinstance(value, StreamsGroupCurrentMemberAssignmentValue):
        parts = value.active_tasks, value.active_tasks_pending_revocation
    else:
        parts = value.assigned_partitions, value.partitions_pending_revocation
    for owned in parts:
        for topic_id, indexes, _ in owned:
            for index in indexes:
                yield topic_id, index


# --------------------------------------------------------------------------------------------------- what members were told

_ONE_LEADER = "one leader a generation"
_ONE_ASSIGNMENT = "members of a generation hold parts of one assignment"


class _Generation:
    """The answers that concern one generation."""

    __slots__ = ("has_begun", "leader", "members", "protocol", "told")

    def __init__(self, leader: str, protocol: str) -> None:
        self.leader = leader
        self.protocol = protocol
        self.members: frozenset[str] | None = None
        self.told: set[str] = set()
        # True once an answer told it at its beginning, when the leader is to assign.
        self.has_begun = False


class Told:
    """By one shard from a load to the next unload: what is not written may be told otherwise after that."""

    def __init__(self) -> None:
        self._generations: dict[tuple[ClassicGroup, int], _Generation] = {}

    def note_join(self, group: ClassicGroup, response: Any) -> None:
        """A JoinGroup is granted. Raises Violation."""
        number = response.generation_id
        where = f"{group.group_id}, generation {number}"
        leader = place_of(response.leader)
        known = self._generations.setdefault((group, number), _Generation(leader, response.protocol_name))
        if known.leader != leader:
            raise Violation(_ONE_LEADER, f"{where} is led by {known.leader}, and {response.member_id} was told by {leader}")
        if known.protocol != response.protocol_name:
            raise Violation(_ONE_LEADER, f"{where} has the protocol {known.protocol}, and then {response.protocol_name}")
        if bool(response.members) != (response.leader == response.member_id):
            raise Violation(_ONE_LEADER, f"{where}: {response.member_id} is given the members, and {response.leader} leads")
        if response.members:
            members = frozenset(place_of(member.member_id) for member in response.members)
            if known.members not in (None, members):
                raise Violation(_ONE_LEADER, f"{where} has the members {sorted(known.members or ())}, then {sorted(members)}")
            known.members = members
            known.has_begun = known.has_begun or not response.skip_assignment
        known.told.add(place_of(response.member_id))
        if known.members is not None and not known.told <= known.members:
            strangers = sorted(known.told - known.members)
            raise Violation(_ONE_LEADER, f"{where}: {strangers} are told of it, and its members are {sorted(known.members)}")

    def check_group(self, group: ClassicGroup) -> None:
        """Check that each member of a generation has joined it; a static member may be late. Raises Violation."""
        known = self._generations.get((group, group.generation))
        if known is None:
            return
        where = f"{group.group_id}, generation {group.generation}"
        if group.state is GroupState.COMPLETING_REBALANCE and known.leader not in known.told:
            raise Violation(_ONE_LEADER, f"{where} is led by {known.leader}, who has not joined it")
        if group.state is GroupState.STABLE and known.has_begun:
            strangers = [each for each, member in group.members.items() if not member.is_static and each not in known.told]
            if strangers:
                raise Violation("who is in a generation has joined it", f"{where} has members {strangers}")


def check_sync(log: SimulatedLog, group_id: str, generation: int, member_id: str, assignment: bytes) -> None:
    """A SyncGroup is granted. Raises Violation."""
    where = f"{group_id}, generation {generation}: {member_id} is given {assignment!r}"
    written = log.history.generations.get(group_id, {}).get(generation)
    if written is None or written.offset >= log.high_watermark:
        raise Violation(_ONE_ASSIGNMENT, f"{where}, of which nothing is committed")
    expected = written.assignments.get(place_of(member_id))
    if expected != assignment:
        raise Violation(_ONE_ASSIGNMENT, f"{where}, and the log has {expected!r}")
