"""A route of the control interface: a path, what its body may have, and what it does. Shared by all routes.

What the body may have is said once: it is checked by this, and described by it in OpenAPI.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from odradek.testing.faults.fault import Fault
    from odradek.testing.threaded import Broker, Snapshot

Json = dict[str, Any]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "object": (dict,),
    "array": (list,),
}


class BadRequest(Exception):
    """A request that says what cannot be done; the message says why, and what is allowed."""


class Field(NamedTuple):
    """One field of a body. ``type`` is JSON Schema's, ``choices`` are all values allowed where there are any."""

    type: str
    about: str
    is_required: bool = False
    choices: tuple[str, ...] = ()

    def schema(self) -> Json:
        """Return the OpenAPI schema of this parameter."""
        return {"type": self.type, "description": self.about, **({"enum": list(self.choices)} if self.choices else {})}


def check(fields: Mapping[str, Field], body: Mapping[str, object], what: str) -> None:
    """Raises BadRequest unless ``body`` has all fields that it must, and each is as ``fields`` says."""
    for name, value in body.items():
        field = fields.get(name)
        if field is None:
            raise BadRequest(f"{what} has no {name!r}; it may have {', '.join(fields) or 'nothing'}")
        if not isinstance(value, _TYPES[field.type]) or isinstance(value, bool):
            raise BadRequest(f"{name} is of type {field.type}, and not {value!r}")
        if field.choices and value not in field.choices:
            raise BadRequest(f"{name} is one of {', '.join(field.choices)}, and not {value!r}")
    for name, field in fields.items():
        if field.is_required and name not in body:
            raise BadRequest(f"{what} must have {name!r}: {field.about}")


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
