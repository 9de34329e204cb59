"""Explains each target assignment: the partitions it moves and why, one log line each, and counters.

``moves`` is a pure function of the old and the new targets:

    A partition p moves if its owner in the old targets, if any, is not its owner in the new targets.
    The first of these that holds is the reason:

    source is none      no member had any of p's topic             NEW_TOPIC
                        p is beyond all that members had of it     NEW_PARTITION
                        else                                       HAD_NO_OWNER
    source              p's topic does not exist any more          TOPIC_GONE
                        is no member any more                      OWNER_GONE
                        does not subscribe to p's topic            OWNER_UNSUBSCRIBED
                        had more partitions than it has now        BALANCE
                        else                                       ASSIGNORS_ORDER

BALANCE counts only topics that a member still subscribes to. If all members subscribe to the same topics, ``uniform`` moves
nothing for ASSIGNORS_ORDER; ``range`` does when its ranges shift.

When a member leaves, a tombstone removes its target before new targets are computed. A caller that needs the former owner must
keep that target until then.

The reasons for raising a group's epoch are noted until its target assignment is computed. Then a line says what has changed,
which partitions move between which members, and why. Once the last partition moving between members is given up, another line
gives the duration and the last member.

Notes cover decisions, in memory only. If a decision's records cannot be appended, the next decision makes its notes again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID  # noqa: TC003  the type of a named tuple's field

from odradek.coordinator.group.assignor.spec import topic_order
from odradek.coordinator.group.consumer.member import NOTHING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.coordinator.group.assignor.spec import GroupAssignment, GroupSpec
    from odradek.coordinator.group.config import GroupReports
    from odradek.coordinator.group.consumer.member import ConsumerMember, Partitions
    from odradek.coordinator.group.consumer.topics import Topics
    from odradek.timing.clock import Clock


class MoveReason(StrEnum):
    """Why a partition moves."""

    NEW_TOPIC = "nobody had any of its topic"
    NEW_PARTITION = "the partition is new"
    HAD_NO_OWNER = "nobody had it"
    TOPIC_GONE = "its topic is gone"
    OWNER_GONE = "its owner is gone"
    OWNER_UNSUBSCRIBED = "its owner does not subscribe to its topic any more"
    BALANCE = "its owner had more than its share"
    ASSIGNORS_ORDER = "the assignor's order of members has changed"


class Move(NamedTuple):
    """A partition that moves. ``source`` is None if it had no owner, ``target`` if it gets none."""

    topic_id: UUID
    partition: int
    source: str | None
    target: str | None
    reason: MoveReason


def moves(
    previous: GroupAssignment, group: GroupSpec, given: GroupAssignment, successors: Mapping[str, str], topics: set[UUID]
) -> list[Move]:
    """Return the moves, by topic and index.

    Args:
        previous: the old targets, by the member ids of their time.
        group: the group that the new targets are for.
        given: the new targets.
        successors: the current ids of static members that have come back under another id, by former id.
        topics: the existing topics.
    """
    before: dict[tuple[UUID, int], str] = {}
    highest: dict[UUID, int] = {}
    for member_id, partitions in previous.items():
        for topic_id, indexes in partitions.items():
            highest[topic_id] = max(highest.get(topic_id, -1), *indexes, -1)
            for index in indexes:
                before[topic_id, index] = successors.get(member_id, member_id)
    after = {
        (topic_id, index): member_id
        for member_id, partitions in given.items()
        for topic_id, indexes in partitions.items()
        for index in indexes
    }
    had = _sizes(group, before)
    has = _sizes(group, after)

    def reason(topic_id: UUID, index: int, source: str | None) -> MoveReason:
        if source is None:
            if topic_id not in highest:
                return MoveReason.NEW_TOPIC
            return MoveReason.NEW_PARTITION if index > highest[topic_id] else MoveReason.HAD_NO_OWNER
        if topic_id not in topics:
            return MoveReason.TOPIC_GONE
        member = group.members.get(source)
        if member is None:
            return MoveReason.OWNER_GONE
        if topic_id not in member.topic_ids:
            return MoveReason.OWNER_UNSUBSCRIBED
        return MoveReason.BALANCE if had[source] > has[source] else MoveReason.ASSIGNORS_ORDER

    moved = [each for each in before.keys() | after.keys() if before.get(each) != after.get(each)]
    moved.sort(key=lambda each: (topic_order(each[0]), each[1]))
    return [
        Move(topic_id, index, source, after.get((topic_id, index)), reason(topic_id, index, source))
        for topic_id, index in moved
        for source in (before.get((topic_id, index)),)
    ]


def _sizes(group: GroupSpec, owners: Mapping[tuple[UUID, int], str]) -> dict[str, int]:
    """Return the number of partitions each member has, counting only topics it subscribes to."""
    found = dict.fromkeys(group.members, 0)
    for (topic_id, _), member_id in owners.items():
        if member_id in found and topic_id in group.members[member_id].topic_ids:
            found[member_id] += 1
    return found


# The most changes, or moves, named in one line. All of them are counted.
MOST_NAMED: Final = 20
_NO_EPOCH: Final = 0


@dataclass(slots=True)
class ExplanationCounters:
    """Counters since the shard was loaded: epochs raised, partitions moved, and how long moving partitions were kept (ms)."""

    raised: int = 0
    moves: Counter[MoveReason] = field(default_factory=Counter)
    given_up: int = 0
    kept_sum_ms: float = 0.0
    kept_max_ms: float = 0.0


class _Notes:
    """The notes of one group. ``kept`` maps partitions still to be given up to their holder, ``since_ms`` says since when."""

    __slots__ = ("changes", "departed", "epoch", "kept", "since_ms", "successors")

    def __init__(self) -> None:
        self.changes: list[str] = []
        self.departed: dict[str, Partitions] = {}
        self.successors: dict[str, str] = {}
        self.kept: dict[tuple[UUID, int], str] = {}
        self.epoch = _NO_EPOCH
        self.since_ms = 0.0


class Explanations:
    """The explanations of the consumer groups of one shard. Loop thread only."""

    __slots__ = ("_clock", "_groups", "_reports", "_topics", "counters")

    def __init__(self, clock: Clock, topics: Topics, reports: GroupReports) -> None:
        self._clock = clock
        self._topics = topics
        self._reports = reports
        self._groups: dict[str, _Notes] = {}
        self.counters = ExplanationCounters()

    @property
    def is_empty(self) -> bool:
        """Return whether no group has notes."""
        return not self._groups

    def note_raised(self, group_id: str, *why: str) -> None:
        """Note that, and why, the group's epoch is raised."""
        self.counters.raised += 1
        changes = self._notes(group_id).changes
        # Without heartbeats no target is computed, while topics may change again and again. So limit the notes.
        changes += [each for each in why if each not in changes][: MOST_NAMED + 1 - len(changes)]

    def note_departed(self, group_id: str, member: ConsumerMember, target: Partitions | None) -> None:
        """Note that a member is removed, with its target, and gives up its partitions."""
        notes = self._notes(group_id)
        if target:
            notes.departed[member.member_id] = target
        self.note_given_up(group_id, member, None)

    def note_successor(self, group_id: str, former_id: str, member_id: str) -> None:
        """Note that a static member has come back under another id."""
        self._notes(group_id).successors[former_id] = member_id

    def note_target(
        self,
        group_id: str,
        epoch: int,
        assignor: str,
        previous: Mapping[str, Partitions],
        spec: GroupSpec,
        given: GroupAssignment,
    ) -> None:
        """Report a computed target assignment, and begin to wait for the partitions that move."""
        notes = self._notes(group_id)
        topics = {topic_id for each in (previous, given) for targets in each.values() for topic_id in targets}
        existing = {topic_id for topic_id in topics if self._topics.name_of(topic_id) is not None}
        before = {**notes.departed, **previous}
        found = moves(before, spec, given, notes.successors, existing)
        self.counters.moves.update(move.reason for move in found)
        self._reports.info(
            "a target assignment was computed",
            group=group_id,
            epoch=epoch,
            assignor=assignor,
            members=len(spec.members),
            why=first_named(notes.changes),
            moved=len(found),
            moves=first_named([self._move(move) for move in found[: MOST_NAMED + 1]], len(found)),
        )
        now_ms = self._clock.monotonic_ms()
        fresh = self._groups[group_id] = _Notes()
        fresh.epoch, fresh.since_ms = epoch, now_ms
        fresh.kept = {
            (move.topic_id, move.partition): move.source
            for move in found
            if move.source is not None and move.target is not None and move.source in spec.members
        }

    def note_given_up(self, group_id: str, old: ConsumerMember, new: ConsumerMember | None) -> None:
        """Note the partitions given up by a member that is now ``new``, or None if it is gone."""
        notes = self._groups.get(group_id)
        if notes is None or not notes.kept:
            return
        took_ms = self._clock.monotonic_ms() - notes.since_ms
        held = NOTHING if new is None else new.held()
        given_up = [
            (topic_id, index)
            for (topic_id, index), holder in notes.kept.items()
            if holder == old.member_id and index not in held.get(topic_id, ())
        ]
        for key in given_up:
            del notes.kept[key]
            self.counters.given_up += 1
            self.counters.kept_sum_ms += took_ms
            self.counters.kept_max_ms = max(self.counters.kept_max_ms, took_ms)
        if given_up and not notes.kept:
            self._reports.info(
                "all moved partitions were given up",
                group=group_id,
                epoch=notes.epoch,
                took_ms=round(took_ms),
                last=old.member_id,
            )

    def forget(self, group_id: str) -> None:
        """Drop the notes of a group that is gone."""
        self._groups.pop(group_id, None)

    def _notes(self, group_id: str) -> _Notes:
        notes = self._groups.get(group_id)
        if notes is None:
            notes = self._groups[group_id] = _Notes()
        return notes

    def _move(self, move: Move) -> str:
        topic = self._topics.name_of(move.topic_id) or str(move.topic_id)
        return f"{topic}-{move.partition} from {move.source or 'nobody'} to {move.target or 'nobody'}: {move.reason.value}"


def first_named(texts: list[str], count: int | None = None) -> list[str]:
    """Return the first ``MOST_NAMED`` texts, and how many more there are."""
    hidden = (len(texts) if count is None else count) - MOST_NAMED
    return texts if hidden <= 0 else [*texts[:MOST_NAMED], f"and {hidden} more"]
