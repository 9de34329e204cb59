"""The broker's data directory, watched: how often logs roll, how often they are compacted, and which are not any more.

A look finds segments by the names of their files, and completed compactions by the offsets in ``cleaner-offset-checkpoint``,
which Apache Kafka has, too. Two compactions of a log between two looks count as one.

A coordinator's log is due as Kafka defines it: of its closed segments, the share behind that offset, in bytes, is over
``log.cleaner.min.cleanable.ratio``. It may be due for a while, until transactions have ended. If it remains due, and the offset
does not move, its cleaner has given up.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from tests.campaigns.soak.books import require
from tests.campaigns.soak.settings import CLEANABLE_RATIO

if TYPE_CHECKING:
    from pathlib import Path

    from tests.campaigns.soak.patience import ServedClock

INTERVAL_S = 0.25
CHECKPOINT = "cleaner-offset-checkpoint"
COORDINATORS = ("__consumer_offsets", "__transaction_state")
_FIRST_ENTRY = 2


class Segments:
    """Looks every quarter of a second, in a thread, within its ``with``; counts are by topic."""

    def __init__(self, data_dir: Path, clock: ServedClock) -> None:
        self.rolls: Counter[str] = Counter()
        self.compactions: Counter[str] = Counter()
        self._data_dir = data_dir
        self._clock = clock
        # By partition, as its directory is called.
        self._seen: dict[str, set[str]] = {}
        self._cleaned: dict[str, int] = {}
        self._due_since_s: dict[str, float] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="segments", daemon=True)

    def look(self) -> None:
        """Count what is new, and note what is due."""
        names = [path.name for path in self._data_dir.glob("*-*") if path.name.rpartition("-")[2].isdecimal()]
        for name in names:
            self._look_at(name)
        # The file is replaced as a whole.
        with suppress(OSError):
            for line in (self._data_dir / CHECKPOINT).read_text().splitlines()[_FIRST_ENTRY:]:
                topic, index, offset = line.rsplit(" ", 2)
                self._note_cleaned(topic, f"{topic}-{index}", int(offset))
        for name in names:
            if name.startswith(COORDINATORS):
                self._look_whether_due(name)

    def are_compacted(self) -> bool:
        """Whether no coordinator's log is due, as of the last look."""
        return not self._due_since_s

    def require_compacted(self, timeout_s: float) -> None:
        """Raises Violation if a coordinator's log has been due for longer, by the served clock."""
        now_s = self._clock.now_s()
        for name, since_s in self._due_since_s.copy().items():
            due_s = now_s - since_s
            require(
                due_s < timeout_s,
                f"{name} is not compacted any more: due for {due_s:.0f} s, from {self._cleaned.get(name, 0)} on",
            )

    def _look_at(self, name: str) -> None:
        seen = self._seen.setdefault(name, set())
        found = self._logs(name) - seen
        # The first segment has not been rolled.
        self.rolls[name.rpartition("-")[0]] += len(found) - (not seen and bool(found))
        seen |= found

    def _note_cleaned(self, topic: str, name: str, offset: int) -> None:
        if self._cleaned.get(name, 0) != offset:
            self._cleaned[name] = offset
            self.compactions[topic] += 1
            self._due_since_s.pop(name, None)

    def _look_whether_due(self, name: str) -> None:
        *closed, _ = sorted(self._logs(name)) or [""]
        sizes = {False: 0, True: 0}
        for each in closed:
            # It may just be replaced.
            with suppress(OSError):
                is_dirty = int(each.removesuffix(".log")) >= self._cleaned.get(name, 0)
                sizes[is_dirty] += (self._data_dir / name / each).stat().st_size
        if sizes[True] > CLEANABLE_RATIO * sum(sizes.values()):
            self._due_since_s.setdefault(name, self._clock.now_s())
        else:
            self._due_since_s.pop(name, None)

    def _logs(self, name: str) -> set[str]:
        return {path.name for path in (self._data_dir / name).glob("*.log")}

    def _run(self) -> None:
        while not self._stopping.wait(INTERVAL_S):
            self.look()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self.look()
