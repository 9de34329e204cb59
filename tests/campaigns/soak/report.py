"""The table at the end of a run.

The processor time of a run, by who used it, from ``/proc``: the broker, the tellers of each make, and the bank's own process,
which feeds orders, reads the books and checks. The rest of what the machine did was others' work.

A process is looked at twice a second, and before it is killed. The last moment of a teller that ends by itself is missing.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.campaigns.soak.bank import MAKES
from tests.campaigns.soak.segments import COORDINATORS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.campaigns.soak.patience import ServedClock
    from tests.campaigns.soak.staff import Said


BROKER, BANK = "broker", "bank"
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
# Of /proc/<pid>/stat, counted from the state on: utime, stime, and those of children that have ended, such as the cleaner's.
_USED = slice(11, 15)
# Of /proc/stat: user, nice, system, irq, softirq, and idle, iowait; then others', such as steal.
_BUSY, _IDLE = (1, 2, 3, 6, 7), (4, 5)


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of processor time: by user, by all of the machine, and what there was in all processors."""

    by: Counter[str]
    machine_s: float
    available_s: float

    def lines(self, transfers: int) -> list[str]:
        """For the table."""
        if not transfers or not self.available_s:
            return []
        each = {
            "broker": self.by[BROKER],
            **{f"tellers of {make}": self.by[make] for make in MAKES},
            "feeder and readers": self.by[BANK],
        }
        others = {
            "other processes": max(self.machine_s - sum(each.values()), 0.0),
            "idle": max(self.available_s - self.machine_s, 0.0),
        }
        costs = (f"{who} {spent_s / transfers * 1e3:.2f}" for who, spent_s in each.items())
        shares = (f"{who} {spent_s / self.available_s:.0%}" for who, spent_s in {**each, **others}.items())
        return [
            f"processor time, ms a transfer   {', '.join(costs)}",
            f"share of {os.cpu_count()} processors           {', '.join(shares)}",
        ]


class Costs:
    """The use since this was made."""

    def __init__(self) -> None:
        self._latest: dict[tuple[str, int], float] = {}
        self._own_s = time.process_time()
        self._machine_s, self._available_s = _machine()

    def look(self, who: str, pid: int) -> None:
        """Each process has a pid of its own over the whole run."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[_USED]
        except OSError:
            return
        self._latest[who, pid] = sum(map(int, fields)) / _TICKS_A_SECOND

    def spent(self) -> Spent:
        by: Counter[str] = Counter()
        for (who, _), spent_s in self._latest.items():
            by[who] += spent_s
        by[BANK] = time.process_time() - self._own_s
        machine_s, available_s = _machine()
        return Spent(by, machine_s - self._machine_s, available_s - self._available_s)


def _machine() -> tuple[float, float]:
    """Busy, and all there was, since the machine has started; zeros where it does not say."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    except OSError:
        return 0.0, 0.0
    busy, idle = (sum(int(fields[index]) for index in each) for each in (_BUSY, _IDLE))
    return busy / _TICKS_A_SECOND, (busy + idle) / _TICKS_A_SECOND


@dataclass(frozen=True, slots=True)
class Report:
    """The events of a run. ``duration_s`` is without the time to come to rest."""

    duration_s: float
    transfers: int
    said: Said
    silences: Mapping[str, tuple[float, float]]
    worker_kills: int
    freezes: int
    broker_kills: int
    snapshots: int
    completed: int
    lines: int
    rolls: Counter[str]
    compactions: Counter[str]
    spent: Spent
    clock: ServedClock

    @property
    def harms(self) -> int:
        """Kills and freezes."""
        return self.broker_kills + self.worker_kills + self.freezes

    def unmoved(self) -> list[str]:
        """The coordinators' logs that were not rolled, or not compacted."""
        return [name for name in COORDINATORS if not self.rolls[name] or not self.compactions[name]]

    def __str__(self) -> str:
        said = self.said
        shares = ", ".join(f"{make} {said.excuses(make)}" for make in MAKES)
        silences = ", ".join(
            f"{make} {served_s:.0f} s ({wall_s:.0f} s in all)" for make, (served_s, wall_s) in self.silences.items()
        )
        lines = [
            f"transfers made                  {self.transfers} ({self.transfers / self.duration_s:.0f} a second)",
            f"transactions committed          {len(said.committed)} (answered so)",
            f"aborted on purpose              {len(said.aborted)}",
            f"aborted after a refusal         {said.refused.total()}",
            f"tellers that gave up            {said.gave_up.total()}",
            f"tellers replaced for hanging    {said.hung.total()}",
            f"excuses by client               {shares}, after {self.harms} kills and freezes",
            f"excuses by reason               {said}",
            f"longest silence of a teller     {silences}",
            f"teller kills survived           {self.worker_kills}",
            f"tellers frozen, woken as zombie {self.freezes}",
            f"broker kills survived           {self.broker_kills}",
            f"broker between kill and start   {self.clock.away_s:.0f} s",
            f"broker waiting for a processor  {self.clock.starved_s:.0f} s",
            f"log rolls                       {_counts(self.rolls)}",
            f"log compactions                 {_counts(self.compactions)}",
            f"snapshots checked               {self.snapshots} ({self.completed} in the middle of a transaction's markers)",
            f"records of the books            {self.lines}, each to be read by every client, and all once more",
            *self.spent.lines(self.transfers),
        ]
        return "\n".join(lines)


def _counts(counter: Counter[str]) -> str:
    return f"{counter.total()}: {', '.join(f'{name} {count}' for name, count in sorted(counter.items()) if count)}"
