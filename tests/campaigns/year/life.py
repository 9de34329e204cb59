"""The life of a broker, day by day, what is measured of it, and what must hold of the measures."""

import asyncio
import gc
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import WeakSet

from odradek.broker.start.server import Broker
from odradek.common.logging import lines_to
from odradek.protocol.coordinator_records import offsets
from odradek.timing.clock import VirtualClock
from tests.campaigns.year.busy_broker import BusyBroker
from tests.memory_filesystem import MemoryFile, MemoryFileSystem


class Handle(MemoryFile):
    """A file that somebody has open, until it is closed or forgotten."""

    __slots__ = ("__weakref__", "_open", "path")

    def __init__(self, path: str, file: MemoryFile, handles: "WeakSet[Handle]") -> None:
        self.data = file.data
        self.path = path
        self._open = handles
        handles.add(self)

    def close(self) -> None:
        """Let go of it."""
        self._open.discard(self)


class WatchedDisk(MemoryFileSystem):
    """``handles`` are the files that are open."""

    def __init__(self) -> None:
        super().__init__()
        self.handles: WeakSet[Handle] = WeakSet()

    def open(self, path: str, *, create: bool = False) -> Handle:
        """A handle of its own for each who opens the file."""
        return Handle(path, super().open(path, create=create), self.handles)


# Caches, of so many entries at most, of names that there were: they are full after some years of this.
_CACHES = (offsets._remember_names.cache_clear,)
_METADATA = "__cluster_metadata"
_KINDS = (".log", ".index", ".snapshot", ".deleted")
MEASURES = (
    *("disk bytes", "files", *(f"{kind} files" for kind in _KINDS), "open files", "logs", "segments"),
    *(
        "producers",
        "open transactions",
        "timers",
        "groups",
        "offsets",
        "pending offsets",
        "transactional ids",
        "blocks of memory",
    ),
)


def measure(broker: Broker, disk: WatchedDisk) -> dict[str, int]:
    """All of it by name. Left out is the metadata log, which keeps a few records of each topic that there ever was."""
    clears = [*_CACHES, *(host.runtime._partition_of.clear for host in (broker.groups, broker.transactions))]
    for clear in clears:
        clear()
    gc.collect()
    files = {path: file for path, file in disk.files.items() if _METADATA not in path}
    kinds: Counter[str] = Counter(path[path.rfind(".") :] for path in files)
    logs = list(broker.log_manager.logs.values())
    groups = _shards(broker.groups)
    transactions = _shards(broker.transactions)
    return {
        "disk bytes": sum(len(file.data) for file in files.values()),
        "files": len(files),
        **{f"{kind} files": kinds[kind] for kind in _KINDS},
        "open files": sum(_METADATA not in handle.path for handle in disk.handles),
        "logs": len(logs),
        "segments": sum(len(log.segments) for log in logs),
        "producers": sum(len(log.producers.by_id) for log in logs),
        "open transactions": sum(len(log.producers.open_transactions) for log in logs),
        "timers": len(broker.timer),
        "groups": sum(len(shard.groups.stored) + len(shard.groups.live) for shard in groups),
        "offsets": sum(len(shard.offsets) for shard in groups),
        "pending offsets": sum(len(shard.offsets.pending) for shard in groups),
        "transactional ids": sum(len(shard.transactions.by_id) for shard in transactions),
        "blocks of memory": sys.getallocatedblocks(),
    }


def _shards(coordinator: Any) -> list[Any]:
    return [hosted.shard for hosted in coordinator.runtime._hosted.values()]


YEAR_DAYS = 365
_MEASURED_EVERY_DAYS = 5
# Everything that has its time has had it by the end of the second month. The rest of the first half is then compared with the
# second half, in which the tides may be a little higher.
_SETTLED = 60 // _MEASURED_EVERY_DAYS
_TIDE = 1.05
# A start may drop what a running broker still keeps.
_RESTART = 0.02
PRESENT = ("segments", ".snapshot files", "producers", "groups", "offsets", "transactional ids")
KEPT = ("disk bytes", "logs", "segments", "groups", "offsets", "transactional ids")


def _silent(level: str, event: str, fields: Mapping[str, object]) -> None:
    """Nothing may go wrong in all this time."""
    if level != "info":
        raise AssertionError(f"{event} {fields}")


class Lived(NamedTuple):
    """Measures by name: one every few days, and one after the restart at the end."""

    measures: list[dict[str, int]]
    restarted: dict[str, int]

    def grows(self, name: str) -> bool:
        """Whether the second half of the time saw more of it than the first half, once that had settled."""
        values = [measured[name] for measured in self.measures]
        half = len(values) // 2
        return max(values[half:]) > max(values[_SETTLED:half]) * _TIDE

    def is_missed(self, name: str) -> bool:
        """Whether there was none of it at any of the measures."""
        return min(measured[name] for measured in self.measures) == 0

    def is_lost(self, name: str) -> bool:
        """Whether the restart found less of it, or more, than there was."""
        before = self.measures[-1][name]
        return abs(self.restarted[name] - before) > _RESTART * before

    def violations(self) -> list[str]:
        """A line for each."""
        return [
            *(f"{name} grows" for name in MEASURES if self.grows(name)),
            *(f"{name}: none at times" for name in PRESENT if self.is_missed(name)),
            *(f"{name}: not the same after a restart" for name in KEPT if self.is_lost(name)),
        ]


def live(days: int, seed: int) -> Lived:
    """So many days under the virtual clock, then a restart."""
    loop = asyncio.new_event_loop()
    try:
        with lines_to(_silent):
            return _live(loop, days, seed)
    finally:
        loop.close()


def _live(loop: asyncio.AbstractEventLoop, days: int, seed: int) -> Lived:
    disk, clock = WatchedDisk(), VirtualClock()
    busy = BusyBroker(loop, disk, clock, seed)
    busy.start()
    busy.create_topics()
    measures = []
    for day in range(1, days + 1):
        busy.pass_a_day()
        if day % _MEASURED_EVERY_DAYS == 0:
            measures.append(measure(busy.broker, disk))
    busy.stop()
    again = BusyBroker(loop, disk, clock, seed + 1)
    again.start()
    again.load_coordinators()
    restarted = measure(again.broker, disk)
    again.stop()
    return Lived(measures, restarted)
