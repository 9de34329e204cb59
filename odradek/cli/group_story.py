"""A group as its records tell it, in log order: what the stories of consumer, share and streams groups have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.modern_group import INITIAL_EPOCH

if TYPE_CHECKING:
    from uuid import UUID

    from odradek.coordinator.group.modern_group import RecordKeys
    from odradek.coordinator.group.streams.explanations import TaskId

Partition = tuple["UUID", int]


@dataclass(slots=True)
class ExplainedMove:
    """A partition, or a task in a ``role``, that moves. ``source`` or ``target`` is None if nobody had it, or gets it.

    ``kept_ms``: from the target assignment until the source gave it up; None while it has not, and where it need not.
    """

    what: Partition | TaskId
    source: str | None
    target: str | None
    reason: str
    role: str = ""
    kept_ms: int | None = None


@dataclass(slots=True)
class Explanation:
    """The explanation of a target assignment. ``moves`` is None if the log lacks the one before. ``at_ms`` is since the epoch."""

    epoch: int
    at_ms: int
    changes: list[str]
    moves: list[ExplainedMove] | None


class GroupStory(ABC):
    """A group as its records describe it. ``keys`` are the classes of its records' keys."""

    def __init__(self, keys: RecordKeys) -> None:
        self.explanations: list[Explanation] = []
        self._keys = keys
        self._forget()

    @property
    def is_there(self) -> bool:
        """Return whether the group exists at the end of the log."""
        return self._hash is not None

    def _forget(self) -> None:
        """Begin anew, as the group is deleted."""
        # Changes since the last target assignment.
        self._changes: list[str] = []
        self._has_previous = False
        self._held: dict[str, set[Any]] = {}
        self._members: dict[str, Any] = {}
        self._hash: int | None = None

    def take(self, key: Any, value: Any, at_ms: int) -> None:  # noqa: ANN401  the types of the group's records
        """Apply the next record of the group, written at ``at_ms``."""
        keys, kind = self._keys, type(key)
        if kind is keys.member:
            self._take_member(key.member_id, value, at_ms)
        elif kind is keys.assignment:
            self._take_assignment(key.member_id, value, at_ms)
        elif kind is keys.target:
            self._take_target(key.member_id, value)
        elif kind is keys.target_epoch:
            if value is not None:
                self._explain(value.assignment_epoch, at_ms)
        elif kind is not keys.epoch:
            self._take_other(key, value)
        elif value is None:
            self._forget()
        else:
            self._take_epoch(value)

    @abstractmethod
    def _take_member(self, member_id: str, value: Any, at_ms: int) -> None:  # noqa: ANN401
        """Apply the record, or the tombstone, of a member's own metadata."""

    def _take_assignment(self, member_id: str, value: Any, at_ms: int) -> None:  # noqa: ANN401, B027  none, in a share group
        """Apply the record of what a member has."""

    @abstractmethod
    def _take_target(self, member_id: str, value: Any) -> None:  # noqa: ANN401
        """Apply the record of a member's target assignment."""

    @abstractmethod
    def _take_other(self, key: Any, value: Any) -> None:  # noqa: ANN401
        """Apply a record that only groups of this kind have."""

    def _take_epoch(self, value: Any) -> None:  # noqa: ANN401
        """Apply the group's own record. A new hash without another change is one of its topics."""
        if not self._changes and self._hash is not None and self._hash != value.metadata_hash:
            self._changes.append("its topics or their partitions have changed")
        self._hash = value.metadata_hash

    def _explain(self, epoch: int, at_ms: int) -> None:
        if self._hash is None or (epoch == INITIAL_EPOCH and not self._members):
            return
        moves = self._moves() if self._has_previous or epoch == INITIAL_EPOCH + 1 else None
        self.explanations.append(Explanation(epoch, at_ms, self._changes, moves))
        self._changes = []
        self._has_previous = True
        self._keep_targets()

    @abstractmethod
    def _moves(self) -> list[ExplainedMove]:
        """Return the moves since the target assignment before, or since the group began."""

    @abstractmethod
    def _keep_targets(self) -> None:
        """Keep the targets, to compare the next assignment with."""

    def _release(self, member_id: str, held: set[Any], at_ms: int) -> None:
        """Reduce what a member has to ``held``, and note how long it kept the rest."""
        released = self._held.pop(member_id, set()) - held
        if not released or not self.explanations:
            return
        last = self.explanations[-1]
        for each in last.moves or ():
            if each.source == member_id and each.what in released and each.kept_ms is None and each.role != "standby":
                each.kept_ms = at_ms - last.at_ms
