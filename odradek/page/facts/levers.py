"""The levers of the test kit: the clock, faults, snapshots, stop and start. For whoever has the control API's token.

They act on the kit's own objects. ``Held`` has the snapshots and numbered faults, which the control API shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

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
    """A snapshot. ``at_ms`` is the broker's time at that moment."""

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
    raise NotImplementedError


async def advance(broker: Broker, milliseconds: float) -> None:
    """Let time pass. Raises ActionFailed, as all below do."""
    raise NotImplementedError


def freeze(broker: Broker) -> None:
    """Stop the clock."""
    raise NotImplementedError


def resume(broker: Broker) -> None:
    """Let the clock run on."""
    raise NotImplementedError


def set_speed(broker: Broker, speed: float) -> None:
    """Set the clock's speed."""
    raise NotImplementedError


def add_fault(broker: Broker, held: Held, words: Mapping[str, Any]) -> str:
    """Add a rule, with the keys of docs/testing.md. Return its number."""
    raise NotImplementedError


def remove_fault(broker: Broker, held: Held, number: str) -> None:
    """Remove a rule."""
    raise NotImplementedError


async def take_snapshot(broker: Broker, held: Held) -> str:
    """Take a snapshot. Return its number."""
    raise NotImplementedError


async def restore(broker: Broker, held: Held, number: str) -> None:
    """Go back to a snapshot. Connections break."""
    raise NotImplementedError


async def stop(broker: Broker) -> None:
    """Stop the broker in good order."""
    raise NotImplementedError


def kill(broker: Broker) -> None:
    """End the broker as kill -9 does."""
    raise NotImplementedError


async def start(broker: Broker) -> None:
    """Start the broker again, at the same address."""
    raise NotImplementedError
