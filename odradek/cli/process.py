"""The process of a broker or a controller: limits, signals, memory, and its end.

The interpreter looks at the youngest objects often. At those that outlived some of these looks it looks seldom, and at all others
hardly ever. Each look stops the event loop, for some milliseconds for every 100,000 objects. A large request makes a million
objects, and a cluster of thousands of partitions has as many. So the second kind of look comes early, while it is cheap, and the
third is no business of the interpreter's: it is taken here, when no long work is under way. What is left by then stays mostly,
and is set aside. It is looked at again when a quarter as much has come to it, since what is deleted may be among it. For 10,000
partitions that takes 0.2 s, so it waits for a second without a request, until there is sixteen times as much.

Memory that is free is given back on request: the C library keeps what lies between blocks in use.
"""

import asyncio
import contextlib
import gc
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from odradek.storage.log.open_segments import fit_limit

FAILED = 1
CANNOT_START = 2


def raise_open_files_limit() -> None:
    """Take as many open files as the system allows, and have segments leave half of them to connections."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        fit_limit(soft)


def on_stop_signal(stop: Callable[[], None]) -> None:
    """Call ``stop`` on the first SIGTERM or SIGINT; a second one ends the process as it would without us."""
    loop = asyncio.get_running_loop()

    def on_signal(number: signal.Signals) -> None:
        loop.remove_signal_handler(number)
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)


def cannot_start(reason: object) -> int:
    """Say why the broker could not start; the exit status."""
    return tell(reason, CANNOT_START)


def tell(reason: object, status: int) -> int:
    """Say why the command ends with ``status``, in one line; returns it."""
    print(f"odradek: {' '.join(str(reason).split())}", file=sys.stderr)
    return status


_YOUNGEST: Final = 20_000
_YOUNG: Final = 4
# A hundred thousand objects were made, and not freed, since.
_DUE_AFTER: Final = 1
_NEVER: Final = 1_000_000_000
_LOOK_S: Final = 1.0
# All objects set aside are looked at once they have grown by this factor and by this number.
_GROWTH: Final = 1.25
_GROWTH_AT_LEAST: Final = 100_000
_GROWTH_AT_MOST: Final = 16
# A broker that never rests is looked at nevertheless, after so many looks that found it at work.
_PATIENCE: Final = 60


class QuietCollections:
    """The collections of one process.

    ``is_busy`` says whether long work is under way, ``requests`` how many requests there have been; ``call_later`` is the event
    loop's.
    """

    def __init__(
        self,
        is_busy: Callable[[], bool],
        requests: Callable[[], int],
        call_later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._is_busy = is_busy
        self._requests = requests
        self._call_later = call_later
        # The counts at the last look.
        self._requests_seen = 0
        self._passed_over = 0
        # The number of objects set aside at the last look at all of them, and now.
        self._kept = self._set_aside = 0

    def begin(self) -> None:
        """Set the collector, and look from now on."""
        # Nothing made so far will ever be garbage.
        gc.freeze()
        self._kept = self._set_aside = gc.get_freeze_count()
        gc.enable()
        gc.set_threshold(_YOUNGEST, _YOUNG, _NEVER)
        self._call_later(_LOOK_S, self._look)

    def _look(self) -> None:
        if gc.get_count()[2] >= _DUE_AFTER:
            if self._is_busy() and self._passed_over < _PATIENCE:
                self._passed_over += 1
            else:
                self._passed_over = 0
                self._collect()
        requests = self._requests()
        growth = self._set_aside - _GROWTH_AT_LEAST
        is_idle = requests == self._requests_seen
        self._requests_seen = requests
        if growth > self._kept * (_GROWTH if is_idle else _GROWTH_AT_MOST):
            gc.unfreeze()
            self._collect()
            self._kept = self._set_aside
        self._call_later(_LOOK_S, self._look)

    def _collect(self) -> None:
        gc.collect()
        gc.freeze()
        self._set_aside = gc.get_freeze_count()


def give_back() -> None:
    """Give back what can be given back; no effect where the C library is not glibc."""
    # Most brokers never need it.
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
