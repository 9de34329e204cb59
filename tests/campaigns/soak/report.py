"""The table at the end of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.campaigns.soak.bank import MAKES
from tests.campaigns.soak.segments import COORDINATORS

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping

    from tests.campaigns.soak.costs import Spent
    from tests.campaigns.soak.patience import ServedClock
    from tests.campaigns.soak.staff import Said


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
