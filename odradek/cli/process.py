"""The process of a broker or a controller: limits, signals, garbage collection, memory, threads, and its end.

The interpreter collects its youngest generation of objects often, the middle one seldom, and the oldest hardly ever. Each
collection stops the event loop, for some milliseconds per 100,000 objects. A large request makes a million objects, and a
cluster of thousands of partitions has as many. So the middle collection is made to come early, while it is cheap. The oldest
is not left to the interpreter: it is collected here, when no long work is in progress.

Objects that survive mostly stay, so they are frozen. They are collected again once their number has grown by a quarter, since
some of them may have become garbage. For 10,000 partitions that takes 0.2 s. It therefore waits for a second without a
request, unless their number has grown sixteenfold.

Free memory is given back on request: the C library keeps free space between used blocks.
"""

import asyncio
import contextlib
import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Final

from odradek.storage.log.open_segments import fit_limit

FAILED = 1
CANNOT_START = 2


def raise_open_files_limit() -> None:
    """Raise the limit of open files as far as the system allows, and have segments leave half of it to connections."""
    import resource  # not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        fit_limit(soft)


def on_stop_signal(stop: Callable[[], None]) -> None:
    """Call ``stop`` on the first SIGTERM or SIGINT; a second one ends the process by the default handler."""
    loop = asyncio.get_running_loop()

    def on_signal(number: signal.Signals) -> None:
        loop.remove_signal_handler(number)
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)


def cannot_start(reason: object) -> int:
    """Print why the broker could not start. Return the exit status."""
    # "[Errno 98]" says nothing that the text does not.
    if isinstance(reason, OSError) and reason.strerror and reason.filename is None:
        reason = reason.strerror
    return tell(reason, CANNOT_START)


def tell(reason: object, status: int) -> int:
    """Print why the command ends, in one line. Return ``status``."""
    print(f"odradek: {' '.join(str(reason).split())}", file=sys.stderr)
    return status


_YOUNGEST: Final = 20_000
_YOUNG: Final = 4
# 100,000 objects were made since, and not freed.
_DUE_AFTER: Final = 1
_NEVER: Final = 1_000_000_000
_LOOK_S: Final = 1.0
# All frozen objects are collected once their number has grown by this factor and by this number.
_GROWTH: Final = 1.25
_GROWTH_AT_LEAST: Final = 100_000
_GROWTH_AT_MOST: Final = 16
# A broker that is always busy is collected after so many looks.
_PATIENCE: Final = 60


class QuietCollections:
    """The garbage collections of one process.

    ``is_busy`` returns whether long work is in progress, ``requests`` the number of requests so far. ``call_later`` is the
    event loop's.
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
        # The number of requests at the last look, and of looks without a collection.
        self._requests_seen = 0
        self._passed_over = 0
        # The number of frozen objects after the last full collection, and now.
        self._kept = self._set_aside = 0

    def begin(self) -> None:
        """Configure the collector, and look every second from now on."""
        # Objects made so far will never be garbage.
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


def trim_heap() -> None:
    """Return free memory to the system; no effect unless the C library is glibc."""
    import ctypes  # 8 ms

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


# The time one thread may run while another waits, during a thread's long work. Python's default is 5 ms.
_SWITCH_INTERVAL_S: Final = 0.0002


class ThreadsChangeOften:
    """A context manager for any thread. Inside, the interpreter switches threads often, so requests need not wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entered = 0
        self._interval_s = 0.0

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """Enter one of the contexts. Any thread may do so."""
        with self._lock:
            self._entered += 1
            if self._entered == 1:
                self._interval_s = sys.getswitchinterval()
                sys.setswitchinterval(min(self._interval_s, _SWITCH_INTERVAL_S))
        try:
            yield
        finally:
            with self._lock:
                self._entered -= 1
                if not self._entered:
                    sys.setswitchinterval(self._interval_s)
