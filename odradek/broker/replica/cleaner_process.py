"""The broker's handle on the process that cleans logs (odradek.broker.replica.cleaner_child).

Compaction is pure computing that no request needs. In a process of its own it does not hold the interpreter that serves requests.
The process starts with the first log that is due and runs only while logs are due, so it costs no memory otherwise. The broker
plans the cleans and swaps the results in. To abort a clean, the broker kills the process (SIGKILL).
"""

import subprocess
import sys
from collections.abc import Callable
from multiprocessing import Pipe

from odradek.broker.replica.cleaner_child import CleanedGroup, CleanOrder
from odradek.storage.cleaning.cleaner import CleanStats, SwapIn
from odradek.storage.cleaning.plan import CleanerDied
from odradek.storage.cleaning.segment_writer import SEGMENT_SUFFIXES, CleanedSegment
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.recovery.interrupted_swap import CLEANED_SUFFIX

# Import odradek from where this process has it.
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from odradek.broker.replica.cleaner_child import main; main()"
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
