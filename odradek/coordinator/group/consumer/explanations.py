"""Explains each target assignment: one log line each, and counters.

The reasons for raising a group's epoch are noted until its target assignment is computed. Then a line says what has changed,
which partitions move between which members, and why (``assignor.moves``). Once the last partition moving between members is given
up, another line gives the duration and the last member.

Notes cover decisions, in memory only. If a decision's records cannot be appended, the next decision makes its notes again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from odradek.coordinator.group.assignor.moves import Move, MoveReason, moves
from odradek.coordinator.group.consumer.member import NOTHING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from odradek.coordinator.group.assignor.spec import GroupAssignment, GroupSpec
    from odradek.coordinator.group.config import GroupReports
    from odradek.coordinator.group.consumer.member import ConsumerMember, Partitions
    from odradek.coordinator.group.consumer.topics import Topics
    from odradek.timing.clock import Clock

# The most changes, or moves, named in one line. All of them are counted.
_NAMED: Final = 20
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
        changes += [each for each in why if each not in changes][: _NAMED + 1 - len(changes)]

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
            why=_first(notes.changes),
            moved=len(found),
            moves=_first([self._move(move) for move in found[: _NAMED + 1]], len(found)),
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


def _first(texts: list[str], count: int | None = None) -> list[str]:
    """Return the first ``_NAMED`` texts, and how many more there are."""
    hidden = (len(texts) if count is None else count) - _NAMED
    return texts if hidden <= 0 else [*texts[:_NAMED], f"and {hidden} more"]
