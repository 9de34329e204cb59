"""Differences between POSIX systems: how files are written, synced and locked.

Linux has ``fdatasync``. macOS has not, and its ``fsync`` leaves the data in the drive's own cache: only F_FULLFSYNC empties that.
A file system without F_FULLFSYNC, such as a network file system, is synced by ``fsync``.

Left out: Windows, where files cannot be read by position, nor renamed while open.
"""

import errno
import fcntl
import os
from collections.abc import Callable
from typing import Final

_UNKNOWN_COMMAND: Final = frozenset({errno.EINVAL, errno.ENOTSUP, errno.ENOTTY})
_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)
_fdatasync: Final[Callable[[int], None]] = getattr(os, "fdatasync", os.fsync)
# The number of buffers that can be written at a position without joining them. More are refused with EINVAL.
MOST_BUFFERS: Final = os.sysconf("SC_IOV_MAX") if hasattr(os, "pwritev") else 0


def sync_data(fd: int) -> None:
    """Make a file's data and size survive a crash of the machine; its times may not. Raises OSError."""
    if _FULL_SYNC is None:
        _fdatasync(fd)
    else:
        _sync_fully(fd, _FULL_SYNC)


def sync(fd: int) -> None:
    """Make a file, or the names in a directory, survive a crash of the machine. Raises OSError."""
    if _FULL_SYNC is None:
        os.fsync(fd)
    else:
        _sync_fully(fd, _FULL_SYNC)


def lock(fd: int) -> None:
    """Lock a whole file against other processes, including Kafka's, and against other descriptors of this process.

    Raises OSError if it is locked. Kafka locks with fcntl, whose locks never conflict within one process; flock's do. Linux keeps
    the two apart, so both are taken. On macOS they conflict, and one process cannot take both, so flock's is used there.
    """
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if _FULL_SYNC is None:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sync_fully(fd: int, command: int) -> None:
    try:
        fcntl.fcntl(fd, command)
    except OSError as error:
        if error.errno not in _UNKNOWN_COMMAND:
            raise
        os.fsync(fd)
