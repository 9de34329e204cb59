"""What the members of one group saw: assignments with their generations, records they processed, commits they were granted.

Members tell it from threads of their own, or by lines from a process of their own (``member_process``); tests wait for it to say
something, with a deadline, and ask it at the end what must hold of every group.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

WAIT_TIMEOUT_S = 25.0


@dataclass(frozen=True, slots=True)
class Assignment:
    """A member's share of the one topic, as the member was told of it."""

    member_id: str
    generation: int
    partitions: frozenset[int]


class Journal:
    """One group's. Members are known by the names that the test gives them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.assignments: list[tuple[str, Assignment]] = []
        self.holdings: dict[str, Assignment] = {}
        self.processed: dict[int, Counter[int]] = defaultdict(Counter)
        self.processed_by: dict[str, int] = Counter()
        self.granted: dict[int, int] = {}
        self.grants: dict[str, int] = Counter()
        self.failures: dict[str, str] = {}
        self.expected_failures: set[str] = set()
        self.ended: set[str] = set()

    # What members tell.

    def note_assigned(self, name: str, member_id: str, generation: int, partitions: Iterable[int]) -> None:
        """The member holds ``partitions`` from now on, and no others."""
        assignment = Assignment(member_id, generation, frozenset(partitions))
        with self._changed:
            self.assignments.append((name, assignment))
            self.holdings[name] = assignment
            self._changed.notify_all()

    def note_revoked(self, name: str, partitions: Iterable[int]) -> None:
        """The member gives these up."""
        with self._changed:
            held = self.holdings.get(name)
            if held is not None:
                self.holdings[name] = Assignment(held.member_id, held.generation, held.partitions - set(partitions))
            self._changed.notify_all()

    def note_processed(self, name: str, partition: int, offsets: Iterable[int]) -> None:
        with self._changed:
            before = self.processed[partition].total()
            self.processed[partition].update(offsets)
            self.processed_by[name] += self.processed[partition].total() - before
            self._changed.notify_all()

    def note_granted(self, name: str, offsets: Mapping[int, int] | Iterable[tuple[int, int]]) -> None:
        """The broker acknowledged a commit of these."""
        with self._changed:
            for partition, offset in dict(offsets).items():
                self.granted[partition] = max(offset, self.granted.get(partition, 0))
            self.grants[name] += 1
            self._changed.notify_all()

    def note_ended(self, name: str, failure: str | None) -> None:
        """The member is no more: it left, or it failed for good."""
        with self._changed:
            self.holdings.pop(name, None)
            self.ended.add(name)
            if failure is not None:
                self.failures[name] = failure
            self._changed.notify_all()

    # What tests ask.

    def wait_for(self, condition: Callable[[], bool], what: str, timeout_s: float = WAIT_TIMEOUT_S) -> None:
        """Wait until ``condition`` holds; it is looked at whenever a member has something to tell."""
        with self._changed:
            self._changed.wait_for(lambda: condition() or self.failures.keys() - self.expected_failures, timeout_s)
            assert condition(), f"not within {timeout_s} s: {what}; {self}"

    def are_shared(self, names: Iterable[str], partitions: int) -> bool:
        """Whether these members, and nobody else, hold all the partitions, each one of them, and each member has some."""
        shares = [held.partitions for held in self.holdings.values() if held.partitions]
        holders = {name for name, held in self.holdings.items() if held.partitions}
        return holders == set(names) and sorted(index for share in shares for index in share) == list(range(partitions))

    def wait_until_shared(self, *names: str, partitions: int, timeout_s: float = WAIT_TIMEOUT_S) -> None:
        what = f"{partitions} partitions shared by {', '.join(names)}"
        self.wait_for(lambda: self.are_shared(names, partitions), what, timeout_s)

    def wait_until_processed(self, per_partition: Mapping[int, int], timeout_s: float = WAIT_TIMEOUT_S) -> None:
        """Wait until of each partition all records below an offset are processed and the commits of that granted."""

        def condition() -> bool:
            return all(
                len(self.processed[partition]) >= end and self.granted.get(partition, 0) >= end
                for partition, end in per_partition.items()
            )

        self.wait_for(condition, f"all processed and committed up to {dict(per_partition)}", timeout_s)

    def missing(self, per_partition: Mapping[int, int]) -> dict[int, list[int]]:
        """Offsets that nobody processed."""
        gaps = {
            partition: [offset for offset in range(end) if offset not in self.processed[partition]]
            for partition, end in per_partition.items()
        }
        return {partition: offsets for partition, offsets in gaps.items() if offsets}

    def repeated(self) -> dict[int, list[int]]:
        """Offsets that were processed more than once."""
        return {
            partition: sorted(offset for offset, times in counts.items() if times > 1)
            for partition, counts in self.processed.items()
            if any(times > 1 for times in counts.values())
        }

    def owned_twice(self) -> list[tuple[int, int, list[str]]]:
        """(generation, partition, owners) where a partition had two owners of one generation."""
        owners: dict[tuple[int, int], set[str]] = defaultdict(set)
        for name, assignment in self.assignments:
            for partition in assignment.partitions:
                owners[assignment.generation, partition].add(name)
        return [(*place, sorted(names)) for place, names in sorted(owners.items()) if len(names) > 1]

    def member_id(self, name: str) -> str:
        return self.holdings[name].member_id

    def __str__(self) -> str:
        processed = {partition: len(counts) for partition, counts in self.processed.items()}
        held = {name: (each.generation, sorted(each.partitions)) for name, each in self.holdings.items()}
        return f"held {held}, processed {processed}, granted {self.granted}, failures {self.failures}"
