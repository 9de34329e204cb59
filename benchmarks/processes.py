"""What the harness asks of the operating system about a broker's process.

Linux only: everything comes from ``/proc``. CPU time under load is read by the load generator itself, around the load;
here is what is read while a broker idles, and how it is ended.
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
        pss_mib: proportional set size: pages shared with others are counted by their share, MiB.
        rss_mib: resident set size: shared pages are counted in full, MiB.
    """

    pss_mib: float
    rss_mib: float


def memory_of(pid: int) -> Memory:
    """Read the memory of a running process from ``/proc/<pid>/smaps_rollup``."""
    return parse_smaps_rollup(Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii", errors="replace"))


def parse_smaps_rollup(text: str) -> Memory:
    """Take Pss and Rss out of the text of a ``smaps_rollup`` (its sizes are in kB, meaning KiB)."""
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
    """Add utime and stime, fields 14 and 15 of ``/proc/<pid>/stat``.

    The command's name, in brackets, may hold blanks and brackets: fields are counted from behind the last bracket.
    """
    fields_from_state = text.rpartition(")")[2].split()
    user_ticks, system_ticks = fields_from_state[11:13]
    return int(user_ticks) + int(system_ticks)


def end(process: subprocess.Popen[str]) -> None:
    """Kill a process this harness started, and reap it. Its data directory is thrown away: nothing is owed a clean stop."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
