"""The memory and CPU time of a job's processes, JVMs and Python's workers: what Linux has in ``/proc``, watched from outside."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks import processes

# A look at a JVM has the kernel go through all of its memory.
_EVERY_S = 1.0
_MIB = 1024.0


@dataclass(slots=True)
class Peaks:
    """Of processes together: the most memory at any moment, in MiB, and their CPU time, in seconds.

    Memory is resident, and of what is shared each process has its part. CPU time of a process that has ended is what it was when
    it was last seen.
    """

    jvm_mib: float = 0.0
    python_mib: float = 0.0
    jvm_cpu_s: dict[int, float] = field(default_factory=dict)
    python_cpu_s: dict[int, float] = field(default_factory=dict)


class Watched:
    """What is below these processes, themselves left out, looked at until the end of the ``with``: see ``peaks``."""

    def __init__(self, *pids: int) -> None:
        self.peaks = Peaks()
        self._pids = pids
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def cpu_s(self) -> tuple[float, float]:
        """CPU time until now of JVMs and of Python's workers."""
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
                # It has ended meanwhile.
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
    """Children of these, and theirs, as long as they live."""
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
