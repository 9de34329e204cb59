"""What the process of a broker or a controller has to do with its system: limits, signals, and how it ends."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable

from odradek.storage.open_segments import fit_limit

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
