"""The assignors that ``group.consumer.assignors`` names: odradek's own, and those that other packages register.

A package registers an assignor by an entry point of the group ``odradek.assignors``. Its name is the assignor's; its object is a
function as ``coordinator.group.assignor.spec.Assign`` describes it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from odradek.broker.config.definitions import InvalidConfig

_KEY = "group.consumer.assignors"
OWN = ("uniform", "range")
ENTRY_POINTS = "odradek.assignors"


def third_party_assignors(names: Iterable[str]) -> Mapping[str, Callable[[Any], Any]]:
    """Those of ``names`` that are not odradek's own. Raises InvalidConfig where there is none, or it cannot be loaded."""
    others = [name for name in names if name not in OWN]
    if not others:
        return {}
    from importlib.metadata import entry_points

    registered = entry_points(group=ENTRY_POINTS)
    found = {}
    for name in others:
        points = list(registered.select(name=name))
        if len(points) != 1:
            known = ", ".join(sorted(registered.names)) or "none"
            count = f"; {len(points)} have this name" if points else ""
            raise InvalidConfig(_KEY, name, f"{', '.join(OWN)} or an entry point in {ENTRY_POINTS} (there are: {known}{count})")
        where = points[0].value
        try:
            loaded = points[0].load()
        except Exception as failure:
            raise InvalidConfig(_KEY, name, f"an entry point that can be loaded: {where}: {failure!r}") from failure
        if not callable(loaded):
            raise InvalidConfig(_KEY, name, f"an entry point of a function: {where} is {type(loaded).__name__}")
        found[name] = loaded
    return found
