"""A broker's process as the operating system sees it.

Linux only: all figures come from ``/proc``. The load generator reads CPU time around a load by itself; this module reads the
figures of an idle broker, and ends brokers.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_BYTES_PER_KIB = 1024
_BYTES_PER_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Memory:
    """A process's resident memory.

    Args:
        pss_mib: proportional set size in MiB: a shared page is split among the processes that share it.
        rss_mib: resident set size in MiB: a shared page counts in full.
    """

    pss_mib: float
    rss_mib: float


def memory_of(pid: int) -> Memory:
    """Read the memory of a running process from ``/proc/<pid>/smaps_rollup``."""
    return parse_smaps_rollup(Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii", errors="replace"))


def parse_smaps_rollup(text: str) -> Memory:
    """Parse Pss and Rss of a ``smaps_rollup`` (its sizes are in kB, meaning KiB)."""
    kib: dict[str, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words[1:] == ["kB"]:
            kib[name] = int(words[0])
    return Memory(
        pss_mib=kib["Pss"] * _BYTES_PER_KIB / _BYTES_PER_MIB,
        rss_mib=kib["Rss"] * _BYTES_PER_KIB / _BYTES_PER_MIB,
    )


def cpu_seconds_of(pid: int) -> float:
    """User and system CPU time of all threads of a running process, seconds."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    return parse_stat_cpu_ticks(stat) / os.sysconf("SC_CLK_TCK")


def parse_stat_cpu_ticks(text: str) -> int:
    """The sum of utime and stime, fields 14 and 15 of ``/proc/<pid>/stat``.

    The command's name, in brackets, may contain blanks and brackets, so fields are counted from the last bracket on.
    """
    fields_from_state = text.rpartition(")")[2].split()
    user_ticks, system_ticks = fields_from_state[11:13]
    return int(user_ticks) + int(system_ticks)


def end(process: subprocess.Popen[str]) -> None:
    """Kill a process that this harness started, and reap it. Its data directory is deleted anyway, so no clean stop is needed."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
