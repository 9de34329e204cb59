"""Memory and CPU time of a job's processes, JVMs and Python's workers, observed from outside through Linux's ``/proc``."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks import processes

# Each reading of a JVM makes the kernel walk all of its memory, so readings are rare.
_EVERY_S = 1.0
_MIB = 1024.0


@dataclass(slots=True)
class Peaks:
    """Of a set of processes: the peak of their total memory, in MiB, and their CPU time, in seconds.

    Memory is resident; shared memory is split among the processes that share it. A process that has ended counts with the CPU
    time of its last reading.
    """

    jvm_mib: float = 0.0
    python_mib: float = 0.0
    jvm_cpu_s: dict[int, float] = field(default_factory=dict)
    python_cpu_s: dict[int, float] = field(default_factory=dict)


class Watched:
    """Watches the descendants of these processes during the ``with``; ``peaks`` has the result."""

    def __init__(self, *pids: int) -> None:
        self.peaks = Peaks()
        self._pids = pids
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def cpu_s(self) -> tuple[float, float]:
        """CPU time so far: of JVMs, and of Python's workers."""
        self._look()
        return sum(self.peaks.jvm_cpu_s.values()), sum(self.peaks.python_cpu_s.values())

    def _watch(self) -> None:
        while not self._is_over.wait(_EVERY_S):
            self._look()

    def _look(self) -> None:
        jvm_mib = python_mib = 0.0
        for pid in descendants(self._pids):
            try:
                is_jvm = Path(f"/proc/{pid}/comm").read_text(encoding="ascii", errors="replace").strip() == "java"
                mib = processes.memory_of(pid).pss_mib
                cpu_s = processes.cpu_seconds_of(pid)
            except (OSError, KeyError):
                # The process has ended meanwhile.
                continue
            if is_jvm:
                jvm_mib += mib
                self.peaks.jvm_cpu_s[pid] = cpu_s
            else:
                python_mib += mib
                self.peaks.python_cpu_s[pid] = cpu_s
        self.peaks.jvm_mib = max(self.peaks.jvm_mib, jvm_mib)
        self.peaks.python_mib = max(self.peaks.python_mib, python_mib)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._is_over.set()
        self._thread.join()


def descendants(pids: Iterable[int]) -> list[int]:
    """The living descendants of these processes."""
    found: list[int] = []
    left = list(pids)
    while left:
        try:
            children = [
                int(child)
                for task in Path(f"/proc/{left[-1]}/task").iterdir()
                for child in (task / "children").read_text(encoding="ascii").split()
            ]
        except OSError:
            children = []
        left.pop()
        left += children
        found += children
    return found
