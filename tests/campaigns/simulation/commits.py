"""What may have been committed: for each partition of each group, the commits since the last one that was acknowledged.

A commit that is not acknowledged may be there or not, unless it was refused. One that was fetched is there for good, as if it had
been acknowledged: what is fetched is committed, and what is committed stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Place: TypeAlias = tuple[str, int]


class Commit:
    """Offsets by partition, all of them or none; None takes them back."""

    __slots__ = ("group_id", "is_refused", "offsets")

    def __init__(self, group_id: str, offsets: Mapping[int, int | None]) -> None:
        self.group_id = group_id
        self.offsets = offsets
        self.is_refused = False


class Commits:
    """In the order in which the broker is asked; nothing is committed anywhere in the beginning."""

    def __init__(self) -> None:
        # By place, ascending: the last commit known to be there, and those that came after it.
        self._open: dict[Place, list[Commit]] = {}

    def ask(self, group_id: str, offsets: Mapping[int, int | None]) -> Commit:
        """The broker is asked to commit."""
        commit = Commit(group_id, offsets)
        for partition in offsets:
            self._at(group_id, partition).append(commit)
        return commit

    def ask_to_delete(self, group_id: str, partitions: Iterable[int]) -> Commit:
        """The broker is asked to take back what the group has committed."""
        return self.ask(group_id, dict.fromkeys(partitions))

    def acknowledge(self, commit: Commit) -> None:
        """It is there, and all before it overwritten."""
        for partition in commit.offsets:
            known = self._at(commit.group_id, partition)
            if commit in known:
                del known[: known.index(commit)]

    def refuse(self, commit: Commit) -> None:
        """It is not there, and never will be."""
        commit.is_refused = True

    def possible(self, group_id: str, partitions: Iterable[int]) -> dict[int, list[Commit]]:
        """By partition, what may be there now: for who asks now, and is answered later."""
        return {partition: self._at(group_id, partition)[:] for partition in partitions}

    def check_fetched(self, group_id: str, partition: int, offset: int, asked: list[Commit]) -> None:
        """``offset`` was fetched, -1 for none. Raises Violation where it cannot be what was committed.

        It may be what is there now, or what was when it was ``asked`` for: an answer that waited for what it says to be committed
        tells of the moment at which it was decided on.
        """
        known = self._at(group_id, partition)
        wanted = None if offset == -1 else offset
        for index, commit in enumerate(known):
            if commit.offsets[partition] == wanted and not commit.is_refused:
                del known[:index]
                return
        if any(commit.offsets[partition] == wanted and not commit.is_refused for commit in asked):
            return
        possible = [commit.offsets[partition] for commit in known if not commit.is_refused]
        what = f"{group_id}, partition {partition}: {wanted} is fetched, where it can be one of {possible}"
        raise Violation("what was committed is what is fetched", what)

    def _at(self, group_id: str, partition: int) -> list[Commit]:
        known = self._open.get((group_id, partition))
        if known is None:
            known = self._open[group_id, partition] = [Commit(group_id, {partition: None})]
        return known
