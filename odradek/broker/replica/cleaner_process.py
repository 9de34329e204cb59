"""The process that cleans logs: the broker's handle on it, and the program that runs in it.

Compaction is pure computing that no request needs. In a process of its own it does not hold the interpreter that serves requests.
The process starts with the first log that is due and runs only while logs are due, so it costs no memory otherwise. The broker
plans the cleans and swaps the results in. To abort a clean, the broker kills the process (SIGKILL).

The child has none of the broker's state and opens no log. Standard input is a socket to the broker. Both ends write pickled
objects:

    child  -> broker    None            the child is up
    broker -> child     CleanOrder      clean this
    child  -> broker    CleanedGroup    these segments were written and synced as one: swap it in
    broker -> child     None            it is in place
    child  -> broker    CleanStats      the clean is over; or the exception that ended it

The child must end as soon as the broker has ended: the next broker on these directories writes files of the same names. A thread
waits for the end of the socket and then ends the process, in the middle of a clean too.
"""

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, NamedTuple, NoReturn

from odradek.storage.cleaning.cleaner import CleanerDied, CleanerLimits, CleanPlan, CleanStats, Source, SwapIn, Throttle, clean
from odradek.storage.cleaning.segment_writer import CleanedSegment
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log.segment import SEGMENT_SUFFIXES
from odradek.storage.log.segment_files import CLEANED_SUFFIX
from odradek.timing.system_clock import SystemClock

# A tenth of a core under contention, a whole core on an idle machine.
_NICENESS = 10
# The interval at which the thread that watches for the broker's end gets the interpreter.
_SWITCH_INTERVAL_S = 0.0005
_SHORTEST_REST_MS = 1.0


class CleanOrder(NamedTuple):
    """One clean, and its limit of bytes read and written per second."""

    plan: CleanPlan
    limits: CleanerLimits
    bytes_per_second: float


class CleanedGroup(NamedTuple):
    """Source segments, and the cleaned segment that replaces them."""

    sources: list[Source]
    cleaned: CleanedSegment


class _Pace:
    """Limits a clean to a rate. Call it with the number of bytes read and written since the last call."""

    def __init__(self, bytes_per_second: float) -> None:
        self._clock = SystemClock()
        self._throttle = Throttle(bytes_per_second, self._clock.monotonic_ms())
        self._never = threading.Event()

    def __call__(self, size_bytes: int) -> None:
        """Sleep if the clean is ahead of the rate."""
        ahead_ms = self._throttle.ahead_ms(size_bytes, self._clock.monotonic_ms())
        if ahead_ms >= _SHORTEST_REST_MS:
            self._never.wait(ahead_ms / 1000)


class _Broker:
    """The connection to the broker."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._received: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=self._receive, daemon=True).start()

    def receive(self) -> Any:  # noqa: ANN401  an order, or the None that answers a swap
        """Wait for the next object and return it."""
        return self._received.get()

    def send(self, message: object) -> None:
        """Send an object; exit if the broker is gone."""
        try:
            self._connection.send(message)
        except OSError:
            os._exit(0)

    def swap_in(self, sources: list[Source], cleaned: CleanedSegment) -> None:
        """Have the broker swap ``cleaned`` in, and wait until it has."""
        self.send(CleanedGroup(sources, cleaned))
        self.receive()

    def _receive(self) -> NoReturn:
        while True:
            try:
                message = self._connection.recv()
            except (EOFError, OSError):
                os._exit(0)
            self._received.put(message)


def _outcome(order: CleanOrder, broker: _Broker) -> CleanStats | Exception:
    try:
        return clean(order.plan, RealFileSystem(), order.limits, _Pace(order.bytes_per_second), broker.swap_in)
    except Exception as error:  # noqa: BLE001  the broker logs it, as it does for a clean in a thread
        return _sendable(error)


def _sendable(error: Exception) -> Exception:
    """Return ``error``, or a RuntimeError with its ``repr`` if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301  it was made here
    except Exception:  # noqa: BLE001  any class may fail in its own way
        return RuntimeError(repr(error))
    return error


def main() -> NoReturn:
    """Carry out one order after the other until the broker is gone."""
    # A service manager signals all processes of a service at once. The broker may still need this one, and kills it itself.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.nice(_NICENESS)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    broker = _Broker(Connection(0))
    broker.send(None)
    while True:
        broker.send(_outcome(broker.receive(), broker))


# Import odradek from where this process has it.
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from odradek.broker.replica.cleaner_process import main; main()"
# The interval of ``check``: an unwanted clean is aborted that soon.
_CHECK_S = 0.05


class CleanerProcess:
    """Cleans one log at a time, from any thread, but one at a time. Unusable after an exception."""

    def __init__(self) -> None:
        """Start the process and wait until it is up. Raises OSError."""
        ours, theirs = Pipe()
        with theirs:
            # Python's descriptors are not inherited anyway. In a session of its own, the child gets no terminal interrupts.
            self._process = subprocess.Popen(  # noqa: S603  a constant, and this process's own path
                [sys.executable, "-c", _PROGRAM, *sys.path],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                close_fds=False,
                start_new_session=True,
            )
        self._connection = ours
        try:
            ours.recv()
        except (EOFError, OSError) as error:
            # Perhaps this process's executable is not Python.
            raise OSError(f"the process ended with exit status {self.close()}") from error

    def clean(self, order: CleanOrder, check: Callable[[], None], swap_in: SwapIn) -> CleanStats:
        """Clean a log, as odradek.storage.cleaning.cleaner does. ``check`` is called repeatedly; its exceptions abort the clean.

        Raises LogCorrupt, OSError, CleanerDied, and the exceptions of ``check`` and ``swap_in``. An aborted clean leaves no
        files.
        """
        try:
            answer = self._ask(order, check)
            while isinstance(answer, CleanedGroup):
                swap_in(answer.sources, answer.cleaned)
                answer = self._ask(None, check)
        except BaseException as error:
            self.close()
            if isinstance(error, Exception):
                _remove_unfinished(order)
            raise
        if isinstance(answer, Exception):
            self.close()
            raise answer
        return answer

    def close(self) -> int:
        """Kill the process and wait for its end. Return its exit status."""
        self._process.kill()
        status = self._process.wait()
        self._connection.close()
        return status

    def _ask(self, message: CleanOrder | None, check: Callable[[], None]) -> CleanedGroup | CleanStats | Exception:
        try:
            self._connection.send(message)
            while not self._connection.poll(_CHECK_S):
                check()
            answer: CleanedGroup | CleanStats | Exception = self._connection.recv()
        except (EOFError, OSError) as error:
            # These errors are the socket's. An error of the child's disk comes as an answer.
            raise CleanerDied(f"exit status {self.close()}") from error
        return answer


def _remove_unfinished(order: CleanOrder) -> None:
    """Remove the files that a killed process has written."""
    for source in order.plan.sources:
        CleanedSegment(order.plan.directory, source.base_offset, SEGMENT_SUFFIXES, ()).remove(RealFileSystem(), CLEANED_SUFFIX)
