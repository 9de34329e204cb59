"""What memory processes have."""

import mmap
from pathlib import Path

_STATM = Path("/proc/self/statm")


def resident_kib() -> int:
    """Of this process."""
    return _own_pages(1) * mmap.PAGESIZE // 1024


def address_space_bytes() -> int:
    """Of this process."""
    return _own_pages(0) * mmap.PAGESIZE


def memory_kib(pid: int) -> int:
    """The proportional set size of a process."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(rollup.split("\nPss:", 1)[1].split(None, 1)[0])


def _own_pages(column: int) -> int:
    return int(_STATM.read_bytes().split()[column])
