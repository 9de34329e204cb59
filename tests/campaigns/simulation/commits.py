"""The possible committed offsets: for each partition of each group, the commits since the last acknowledged one.

An unacknowledged commit may be in the log or not, unless it was refused. A commit that was fetched counts as acknowledged: only
committed offsets are fetched, and committed offsets stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Place: TypeAlias = tuple[str, int]


class Commit:
    """Offsets by partition, all of them or none; None deletes the offset."""

    __slots__ = ("group_id", "is_refused", "offsets")

    def __init__(self, group_id: str, offsets: Mapping[int, int | None]) -> None:
        self.group_id = group_id
        self.offsets = offsets
        self.is_refused = False


class Commits:
    """The commits in the order of their requests; initially there are none."""

    def __init__(self) -> None:
        # By place, ascending: the last commit known to be in the log, and the later ones.
        self._open: dict[Place, list[Commit]] = {}

    def ask(self, group_id: str, offsets: Mapping[int, int | None]) -> Commit:
        """The broker is asked to commit."""
        commit = Commit(group_id, offsets)
        for partition in offsets:
            self._at(group_id, partition).append(commit)
        return commit

    def ask_to_delete(self, group_id: str, partitions: Iterable[int]) -> Commit:
        """The broker is asked to delete the group's offsets."""
        return self.ask(group_id, dict.fromkeys(partitions))

    def acknowledge(self, commit: Commit) -> None:
        """The commit is in the log, and overwrites all before it."""
        for partition in commit.offsets:
            known = self._at(commit.group_id, partition)
            if commit in known:
                del known[: known.index(commit)]

    def refuse(self, commit: Commit) -> None:
        """The commit is not in the log, and never will be."""
        commit.is_refused = True

    def possible(self, group_id: str, partitions: Iterable[int]) -> dict[int, list[Commit]]:
        """By partition, the commits that may be in the log now; for a request sent now and answered later."""
        return {partition: self._at(group_id, partition)[:] for partition in partitions}

    def check_fetched(self, group_id: str, partition: int, offset: int, asked: list[Commit]) -> None:
        """``offset`` was fetched, -1 for none. Raises Violation if it cannot be the committed one.

        It may be the present one, or one that was possible when it was ``asked`` for: a response may wait until its content is
        committed, and then shows the state at its decision.
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
