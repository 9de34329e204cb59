"""Places in the broker's code, named as ``module:attribute``, and a process that dies there by SIGKILL.

``arm`` wraps the function in the process that calls it. The process dies before the function is called, after it has returned,
or in the middle of a file's append, after part of it has been written. ``watch`` wraps functions in the same way, and does not
kill.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# The dying process writes this to stderr, so that no other SIGKILL is mistaken for it.
REACHED = "crash point reached: "
FILE_APPEND = "odradek.storage.filesystem:RealFile.append"
# Called when the broker can answer. Most points do not mean calls before that.
_SERVES = "odradek.cli.serve:ready_line"


class Moment(Enum):
    """The moment of a call at which the process dies."""

    BEFORE = "before"
    MIDDLE = "in the middle of"
    AFTER = "after"


def always(*_arguments: Any, **_named: Any) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Place:
    """The ``call``-th call of ``target`` with arguments that satisfy ``when``, once the broker serves, or ``at_start``, too.

    In the MIDDLE of FILE_APPEND, ``keep_bytes`` are written: that many from the beginning; if negative, all but that many.
    """

    target: str
    moment: Moment
    when: Callable[..., bool] = always
    call: int = 1
    keep_bytes: int = 0
    at_start: bool = False

    def __str__(self) -> str:
        number = f", call {self.call}" if self.call > 1 else ""
        kept = f", keeping [:{self.keep_bytes}]" if self.moment is Moment.MIDDLE else ""
        return f"{self.moment.value} {self.target.rpartition(':')[2]}{number}{kept}"


def arm(name: str, place: Place) -> None:
    """Make this process die at ``place``."""

    def die(_name: str, arguments: tuple[Any, ...]) -> None:
        if place.moment is Moment.MIDDLE:
            _write_part(*arguments, place.keep_bytes)
        tell(name)
        os.kill(os.getpid(), signal.SIGKILL)

    watch({name: place}, die)


def watch(places: Mapping[str, Place], come: Callable[[str, tuple[Any, ...]], None]) -> None:
    """Call ``come`` with a place's name and its call's arguments when this process comes to one of ``places``."""
    is_serving = False

    def wrap(name: str, place: Place) -> None:
        owner, attribute = _find(place.target)
        original = getattr(owner, attribute)
        calls = 0

        def wrapped(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            if not (is_serving or place.at_start) or not place.when(*arguments, **named):
                return original(*arguments, **named)
            # A failed call was not carried out, so it does not count.
            result = original(*arguments, **named) if place.moment is Moment.AFTER else None
            calls += 1
            if calls == place.call:
                come(name, arguments)
            return result if place.moment is Moment.AFTER else original(*arguments, **named)

        setattr(owner, attribute, wrapped)

    def serves(*arguments: Any) -> Any:
        nonlocal is_serving
        is_serving = True
        return say_ready(*arguments)

    for name, place in places.items():
        wrap(name, place)
    module, function = _find(_SERVES)
    say_ready = getattr(module, function)
    setattr(module, function, serves)


def tell(name: str) -> None:
    """Write to stderr that the process has come to a place."""
    os.write(2, f"{REACHED}{name}\n".encode())


def _find(target: str) -> tuple[Any, str]:
    module, _, path = target.partition(":")
    *owners, attribute = path.split(".")
    owner = import_module(module)
    for each in owners:
        owner = getattr(owner, each)
    return owner, attribute


def _write_part(file: Any, buffers: Any, keep_bytes: int) -> None:
    data = b"".join(buffers)[:keep_bytes]
    assert os.pwrite(file.fileno(), data, file.size()) == len(data) > 0
