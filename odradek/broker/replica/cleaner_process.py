"""The process that cleans logs (odradek.broker.replica.cleaner_child), seen from the broker.

Compaction is computing, and computes nothing that a request needs: in a process of its own it takes the interpreter from no
request. The process starts with the first log that is due, stays while logs are due, and takes no memory else. The broker plans
the cleans and swaps their results in. A clean that is given up ends with the process, by SIGKILL.
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

# It imports odradek from where this process has it.
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from odradek.broker.replica.cleaner_child import main; main()"
# How soon a clean that is not wanted any more is given up.
_CHECK_S = 0.05


class CleanerProcess:
    """Cleans one log at a time; of any thread, one at a time. After an exception it is of no more use."""

    def __init__(self) -> None:
        """Start it, and wait until it is up. Raises OSError."""
        ours, theirs = Pipe()
        with theirs:
            # Python's descriptors are closed in a child anyhow; the interrupt of a terminal is for the broker alone.
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
            # Perhaps this process's executable is no Python.
            raise OSError(f"it has ended with exit status {self.close()}") from error

    def clean(self, order: CleanOrder, check: Callable[[], None], swap_in: SwapIn) -> CleanStats:
        """Clean, as odradek.storage.cleaning.cleaner does. ``check`` is called again and again; its exceptions end the work.

        Raises LogCorrupt, OSError, CleanerDied, and what ``check`` and ``swap_in`` raise. Nothing unfinished is left behind.
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
        """End it, and wait for that; its exit status."""
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
            # All of these are the socket's: an error of the child's disk is an answer.
            raise CleanerDied(f"exit status {self.close()}") from error
        return answer


def _remove_unfinished(order: CleanOrder) -> None:
    """Remove what a process that was killed has written."""
    for source in order.plan.sources:
        CleanedSegment(order.plan.directory, source.base_offset, SEGMENT_SUFFIXES, ()).remove(RealFileSystem(), CLEANED_SUFFIX)
