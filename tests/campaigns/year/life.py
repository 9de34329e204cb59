"""The life of a broker, day by day, what is measured of it, and what must hold of the measures."""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from odradek.broker.logging import lines_to
from odradek.timing.clock import VirtualClock
from tests.campaigns.year.busy_broker import BusyBroker
from tests.campaigns.year.disk import WatchedDisk
from tests.campaigns.year.measure import MEASURES, measure

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
