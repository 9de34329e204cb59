"""The broker's data directory, watched: how often logs roll, and how often they are compacted.

A look finds segments by the names of their files, and completed compactions by the offsets in ``cleaner-offset-checkpoint``,
which Apache Kafka has, too. Two compactions of a log between two looks count as one.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path

INTERVAL_S = 0.25
CHECKPOINT = "cleaner-offset-checkpoint"
COORDINATORS = ("__consumer_offsets", "__transaction_state")
_FIRST_ENTRY = 2


class Segments:
    """Looks every quarter of a second, in a thread, within its ``with``; counts are by topic."""

    def __init__(self, data_dir: Path) -> None:
        self.rolls: Counter[str] = Counter()
        self.compactions: Counter[str] = Counter()
        self._data_dir = data_dir
        self._seen: dict[str, set[str]] = {}
        self._cleaned: dict[str, str] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="segments", daemon=True)

    def look(self) -> None:
        """Count what is new."""
        for directory in self._data_dir.glob("*-*"):
            topic, _, index = directory.name.rpartition("-")
            if index.isdecimal():
                self._look_at(topic, directory)
        # The file is replaced as a whole.
        with suppress(OSError):
            for line in (self._data_dir / CHECKPOINT).read_text().splitlines()[_FIRST_ENTRY:]:
                name, offset = line.rsplit(" ", 1)
                if self._cleaned.get(name, "0") != offset:
                    self._cleaned[name] = offset
                    self.compactions[name.split(" ")[0]] += 1

    def _look_at(self, topic: str, directory: Path) -> None:
        seen = self._seen.setdefault(directory.name, set())
        found = {path.name for path in directory.glob("*.log")} - seen
        # The first segment has not been rolled.
        self.rolls[topic] += len(found) - (not seen and bool(found))
        seen |= found

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
