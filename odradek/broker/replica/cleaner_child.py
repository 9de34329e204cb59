"""The process that cleans logs (odradek.broker.replica.cleaner_process starts it), seen from within.

It has no state of the broker and opens no log. Standard input is a socket to the broker, which both write pickled objects to:

    child  -> broker    None            it is up
    broker -> child     CleanOrder      clean this
    child  -> broker    CleanedGroup    these segments were written and synced as one: swap it in
    broker -> child     None            it is in place
    child  -> broker    CleanStats      the clean is over; or the exception that ended it

The child ends as soon as the broker has ended, whatever it is doing: the next broker on these directories writes files of the
same names. A thread waits for the end of the socket and ends the process.
"""

import os
import pickle
import signal
import sys
import threading
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, NamedTuple, NoReturn

from odradek.storage.cleaning.cleaner import CleanerLimits, CleanStats, Throttle, clean
from odradek.storage.cleaning.plan import CleanPlan, Source
from odradek.storage.cleaning.segment_writer import CleanedSegment
from odradek.storage.filesystem import RealFileSystem
from odradek.timing.system_clock import SystemClock

# A tenth of a core that others want, and all of one that nobody wants.
_NICENESS = 10
# How often the thread that waits for the broker's end gets the interpreter.
_SWITCH_INTERVAL_S = 0.0005
_SHORTEST_REST_MS = 1.0


class CleanOrder(NamedTuple):
    """One clean, and how many bytes it may read and write a second."""

    plan: CleanPlan
    limits: CleanerLimits
    bytes_per_second: float


class CleanedGroup(NamedTuple):
    """Sources, and the segment that is to replace theirs."""

    sources: list[Source]
    cleaned: CleanedSegment


class _Pace:
    """Keeps a clean to so many bytes a second; called with those that were read and written since."""

    def __init__(self, bytes_per_second: float) -> None:
        self._clock = SystemClock()
        self._throttle = Throttle(bytes_per_second, self._clock.monotonic_ms())
        self._never = threading.Event()

    def __call__(self, size_bytes: int) -> None:
        """Wait for as long as the clean is ahead of its time."""
        ahead_ms = self._throttle.ahead_ms(size_bytes, self._clock.monotonic_ms())
        if ahead_ms >= _SHORTEST_REST_MS:
            self._never.wait(ahead_ms / 1000)


class _Broker:
    """The other end."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._received: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=self._receive, daemon=True).start()

    def receive(self) -> Any:  # noqa: ANN401  an order, or the None that a swap is answered by
        """The next object."""
        return self._received.get()

    def send(self, message: object) -> None:
        """Send an object."""
        try:
            self._connection.send(message)
        except OSError:
            os._exit(0)

    def swap_in(self, sources: list[Source], cleaned: CleanedSegment) -> None:
        """Have the broker put ``cleaned`` in place, and wait for that."""
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
    except Exception as error:  # noqa: BLE001  the broker tells, as it does of a clean in a thread
        return _sendable(error)


def _sendable(error: Exception) -> Exception:
    """``error``, or if the broker could not read that, one that says the same."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301  it was made here
    except Exception:  # noqa: BLE001  whatever its class does
        return RuntimeError(repr(error))
    return error


def main() -> NoReturn:
    """Carry out one order after the other, until the broker is gone."""
    # A service manager ends all processes of a service at once; the broker may still have use for this one, and ends it.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.nice(_NICENESS)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    broker = _Broker(Connection(0))
    broker.send(None)
    while True:
        broker.send(_outcome(broker.receive(), broker))
