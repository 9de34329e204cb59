"""The levers of the test kit: the clock, faults, snapshots, stop and start. For whoever has the control API's token.

They act on the kit's own objects. ``Held`` has the snapshots and numbered faults, which the control API shares.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from odradek.page.actions import ActionFailed
from odradek.protocol.errors import KafkaError
from odradek.testing.disk import MemoryDisk
from odradek.timing.system_clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping

    from odradek.testing.faults.fault import Fault
    from odradek.testing.threaded import Broker, Snapshot


class Held(Protocol):
    """The control API's objects: ``ControlObjects``."""

    @property
    def faults(self) -> MutableMapping[Broker, dict[str, Fault]]:
        """The rules by number, for each broker."""

    @property
    def snapshots(self) -> MutableMapping[str, Snapshot]:
        """The snapshots by number."""

    def new_id(self) -> str:
        """Return an unused number."""


@dataclass(frozen=True, slots=True)
class ClockState:
    """The broker's clock. ``ahead_ms`` is its distance from the machine's."""

    now_ms: int
    ahead_ms: int
    is_frozen: bool
    speed: float


@dataclass(frozen=True, slots=True)
class FaultRow:
    """An active rule. ``number`` is None if the control API does not know it. ``last`` tells the last request that it has hit."""

    number: str | None
    rule: str
    hits: int
    last: str


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """A snapshot. ``at_ms`` is the broker's time at that moment; it stands still in the snapshot."""

    number: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Levers:
    """The state of all levers."""

    is_running: bool
    clock: ClockState
    faults: tuple[FaultRow, ...]
    snapshots: tuple[SnapshotRow, ...]
    is_in_memory: bool


def levers(broker: Broker, held: Held) -> Levers:
    """Return the state of all levers."""
    clock = broker.clock
    numbers = {fault: number for number, fault in held.faults.get(broker, {}).items()}
    # A broker whose faults were never used has none.
    rules = broker.faults.rules if "faults" in broker.__dict__ else ()
    return Levers(
        is_running=broker.is_running,
        clock=ClockState(clock.now_ms(), clock.now_ms() - SystemClock().now_ms(), clock.is_frozen, clock.speed),
        faults=tuple(_fault(numbers.get(rule), rule) for rule in rules),
        snapshots=tuple(SnapshotRow(number, each.image.clock.now_ms()) for number, each in held.snapshots.items()),
        is_in_memory=isinstance(broker.disk, MemoryDisk),
    )


def _fault(number: str | None, rule: Fault) -> FaultRow:
    last = ""
    if rule.fired:
        fired = rule.fired[-1]
        about = (fired.api, fired.client_id, fired.group, fired.transactional_id, *fired.topics)
        last = " ".join(str(each) for each in about if each)
    return FaultRow(number, str(rule), rule.hits, last)


async def advance(broker: Broker, milliseconds: float) -> None:
    """Let time pass. Raises ActionFailed, as all below do."""
    with _as_action_failures():
        await broker.clock.advance(milliseconds=milliseconds)


def freeze(broker: Broker) -> None:
    """Stop the clock."""
    broker.clock.freeze()


def resume(broker: Broker) -> None:
    """Let the clock run on."""
    broker.clock.resume()


def set_speed(broker: Broker, speed: float) -> None:
    """Set the clock's speed."""
    with _as_action_failures():
        broker.clock.speed = speed


def add_fault(broker: Broker, held: Held, words: Mapping[str, Any]) -> str:
    """Add a rule, with the keys of docs/testing.md. Return its number."""
    with _as_action_failures():
        fault = broker.faults.add(**words)
    number = held.new_id()
    held.faults[broker] = {**held.faults.get(broker, {}), number: fault}
    return number


def remove_fault(broker: Broker, held: Held, number: str) -> None:
    """Remove a rule."""
    fault = held.faults.get(broker, {}).get(number)
    if fault is None:
        raise ActionFailed(f"there is no rule {number}")
    fault.remove()
    held.faults[broker] = {other: each for other, each in held.faults[broker].items() if other != number}


async def take_snapshot(broker: Broker, held: Held) -> str:
    """Take a snapshot. Return its number."""
    with _as_action_failures():
        snapshot = await broker.snapshot()
    number = held.new_id()
    held.snapshots[number] = snapshot
    return number


async def restore(broker: Broker, held: Held, number: str) -> None:
    """Go back to a snapshot. Connections break."""
    snapshot = held.snapshots.get(number)
    if snapshot is None:
        raise ActionFailed(f"there is no snapshot {number}")
    with _as_action_failures():
        await broker.restore(snapshot)


async def stop(broker: Broker) -> None:
    """Stop the broker in good order."""
    with _as_action_failures():
        await broker.stop()


def kill(broker: Broker) -> None:
    """End the broker as kill -9 does."""
    with _as_action_failures():
        broker.kill()


async def start(broker: Broker) -> None:
    """Start the broker again, at the same address."""
    with _as_action_failures():
        await broker.start()


@contextmanager
def _as_action_failures() -> Iterator[None]:
    """Raise ActionFailed in place of the kit's own refusals."""
    try:
        yield
    except KafkaError as error:
        raise ActionFailed(error.reason or error.code.name) from error
    except (AssertionError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise ActionFailed(" ".join(str(error).split())) from error
