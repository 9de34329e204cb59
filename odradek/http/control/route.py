"""A route of the control API: a path, the fields of its body, its handler, and the type of its answer.

Fields and types are declared once. The fields serve the check and the OpenAPI description, the types mypy and the description.
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
    """A request that cannot be carried out; the message says why, and what is allowed."""


class Field(NamedTuple):
    """One field of a body. ``type`` is JSON Schema's; ``choices``, if there are any, are all allowed values."""

    type: str
    about: str
    is_required: bool = False
    choices: tuple[str, ...] = ()

    def schema(self) -> Json:
        """Return the OpenAPI schema of this parameter."""
        return {"type": self.type, "description": self.about, **({"enum": list(self.choices)} if self.choices else {})}


def check(fields: Mapping[str, Field], body: Mapping[str, object], what: str) -> None:
    """Raise BadRequest unless ``body`` has all required fields, and each matches ``fields``."""
    for name, value in body.items():
        field = fields.get(name)
        if field is None:
            raise BadRequest(f"{what} cannot have {name!r}; allowed: {', '.join(fields) or 'nothing'}")
        if not isinstance(value, _TYPES[field.type]) or isinstance(value, bool):
            raise BadRequest(f"{name} must be of type {field.type}, not {value!r}")
        if field.choices and value not in field.choices:
            raise BadRequest(f"{name} must be one of {', '.join(field.choices)}, not {value!r}")
    for name, field in fields.items():
        if field.is_required and name not in body:
            raise BadRequest(f"{what} must have {name!r}: {field.about}")


class Missing(Exception):
    """The requested thing does not exist."""


class ControlObjects:
    """The faults, forks and snapshots made by clients of the interface, by number. Faults are kept for each broker."""

    def __init__(self) -> None:
        self.faults: defaultdict[Broker, dict[str, Fault]] = defaultdict(dict)
        self.forks: dict[str, Broker] = {}
        self.snapshots: dict[str, Snapshot] = {}
        self._numbers = count(1)

    def new_id(self) -> str:
        """Return an unused number."""
        return str(next(self._numbers))

    def fork(self, number: str) -> Broker:
        """Return a fork. Raises Missing."""
        if number not in self.forks:
            raise Missing(f"there is no fork {number}; forks: {', '.join(self.forks) or 'none'}")
        return self.forks[number]

    def snapshot(self, number: str) -> Snapshot:
        """Return a snapshot. Raises Missing."""
        if number not in self.snapshots:
            raise Missing(f"there is no snapshot {number}; snapshots: {', '.join(self.snapshots) or 'none'}")
        return self.snapshots[number]

    async def close(self) -> None:
        """Stop the forks, and free the snapshots' disk space."""
        for fork in self.forks.values():
            await fork.__aexit__(None, None, None)
        for snapshot in self.snapshots.values():
            snapshot.close()


class ControlCall(NamedTuple):
    """A request: ``named`` are the variable parts of its path, ``query`` and ``body`` its checked fields."""

    broker: Broker
    held: ControlObjects
    named: Mapping[str, str]
    query: Mapping[str, str]
    body: Json

    @property
    def faults(self) -> dict[str, Fault]:
        """Return the broker's faults, by number."""
        return self.held.faults[self.broker]

    def fault(self, number: str) -> Fault:
        """Return a fault. Raises Missing."""
        if number not in self.faults:
            raise Missing(f"there is no fault {number}; faults: {', '.join(self.faults) or 'none'}")
        return self.faults[number]


class Route(NamedTuple):
    """A route. ``path`` has names in braces. ``handle`` returns the answer. An ``open_ended`` body is not checked here.

    ``answer`` is the type that ``handle`` returns: a TypedDict of ``answers``.
    """

    method: str
    path: str
    about: str
    handle: Callable[[ControlCall], Coroutine[None, None, Any]]
    answer: type
    body: Mapping[str, Field] = {}
    query: Mapping[str, Field] = {}
    open_ended: bool = False
