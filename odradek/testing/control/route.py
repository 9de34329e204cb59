"""A route of the control interface: a path, what its body may have, and what it does. Shared by all routes."""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from odradek.testing.control.fields import Field, Json
    from odradek.testing.faults.fault import Fault
    from odradek.testing.threaded import Broker, Snapshot


class Missing(Exception):
    """There is no such thing."""


class Held:
    """What clients of the interface have made, by the numbers that they were told; faults of each broker for itself."""

    def __init__(self) -> None:
        self.faults: defaultdict[Broker, dict[str, Fault]] = defaultdict(dict)
        self.forks: dict[str, Broker] = {}
        self.snapshots: dict[str, Snapshot] = {}
        self._numbers = count(1)

    def new_id(self) -> str:
        """One that nothing else has."""
        return str(next(self._numbers))

    def fork(self, number: str) -> Broker:
        """One of ``forks``. Raises Missing."""
        if number not in self.forks:
            raise Missing(f"there is no fork {number}; forks: {', '.join(self.forks) or 'none'}")
        return self.forks[number]

    def snapshot(self, number: str) -> Snapshot:
        """One of ``snapshots``. Raises Missing."""
        if number not in self.snapshots:
            raise Missing(f"there is no snapshot {number}; snapshots: {', '.join(self.snapshots) or 'none'}")
        return self.snapshots[number]

    async def close(self) -> None:
        """Stop the forks, and free what snapshots hold of the disk."""
        for fork in self.forks.values():
            await fork.__aexit__(None, None, None)
        for snapshot in self.snapshots.values():
            snapshot.close()


class Call(NamedTuple):
    """A request: ``named`` are the parts of its path, ``query`` and ``body`` its fields, which were checked."""

    broker: Broker
    held: Held
    named: Mapping[str, str]
    query: Mapping[str, str]
    body: Json

    @property
    def faults(self) -> dict[str, Fault]:
        """The broker's, by number."""
        return self.held.faults[self.broker]

    def fault(self, number: str) -> Fault:
        """One of ``faults``. Raises Missing."""
        if number not in self.faults:
            raise Missing(f"there is no fault {number}; faults: {', '.join(self.faults) or 'none'}")
        return self.faults[number]


class Route(NamedTuple):
    """``path`` has names in braces. ``handle`` returns the answer. The fields of an ``open_ended`` body are not checked here."""

    method: str
    path: str
    about: str
    handle: Callable[[Call], Coroutine[None, None, Json]]
    body: Mapping[str, Field] = {}
    query: Mapping[str, Field] = {}
    is_open: bool = False
    open_ended: bool = False
