"""The switches between threads during a thread's long work."""

import contextlib
import sys
import threading
from collections.abc import Iterator

# The time one thread may run while another waits, during a thread's long work. Python's default is 5 ms.
_SWITCH_INTERVAL_S = 0.0002


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
