"""The levers of the test kit as they stand: the clock, faults, snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from odradek.testing.disk import MemoryDisk
from odradek.timing.system_clock import SystemClock

if TYPE_CHECKING:
    from odradek.http.control.route import ControlObjects
    from odradek.testing.faults.fault import Fault
    from odradek.testing.threaded import Broker


class FaultRow(NamedTuple):
    """An active rule. ``number`` is None if the control API does not know it. ``last`` tells the last request that it has hit."""

    number: str | None
    rule: str
    hits: int
    last: str


@dataclass(frozen=True, slots=True)
class Levers:
    """The state of all levers. ``ahead_ms`` is the distance of the broker's clock from the machine's.

    ``snapshots`` has the broker's time in each, by number.
    """

    is_running: bool
    is_in_memory: bool
    now_ms: int
    ahead_ms: int
    is_frozen: bool
    speed: float
    faults: tuple[FaultRow, ...]
    snapshots: dict[str, int]


def levers(broker: Broker, held: ControlObjects) -> Levers:
    """Return the state of all levers."""
    clock = broker.clock
    numbers = {fault: number for number, fault in held.faults[broker].items()}
    # A broker whose faults were never used has none.
    rules = broker.faults.rules if "faults" in broker.__dict__ else ()
    return Levers(
        is_running=broker.is_running,
        is_in_memory=isinstance(broker.disk, MemoryDisk),
        now_ms=clock.now_ms(),
        ahead_ms=clock.now_ms() - SystemClock().now_ms(),
        is_frozen=clock.is_frozen,
        speed=clock.speed,
        faults=tuple(_fault(numbers.get(rule), rule) for rule in rules),
        snapshots={number: each.image.clock.now_ms() for number, each in held.snapshots.items()},
    )


def _fault(number: str | None, rule: Fault) -> FaultRow:
    last = ""
    if rule.fired:
        fired = rule.fired[-1]
        about = (fired.api, fired.client_id, fired.group, fired.transactional_id, *fired.topics)
        last = " ".join(str(each) for each in about if each)
    return FaultRow(number, str(rule), rule.hits, last)
