"""Reserved disk space for the writes that free space.

    <data directory>/.odradek-reserve    bytes without a meaning

On a full disk, DeleteTopics and DeleteRecords must write a record or a checkpoint before anything is removed. So must a stop and
a start. They spend the reserve: its file is removed, the write is repeated before any other write, and the file is made again, as
large as possible. Producers' records never use it.
"""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from odradek.storage.filesystem import File, FileSystem

T = TypeVar("T")
RESERVE_FILE: Final = ".odradek-reserve"
RESERVE_BYTES: Final = 1024 * 1024
_CHUNK_BYTES: Final = 64 * 1024
_LEAST_BYTES: Final = 1024
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


def is_full(error: BaseException | None) -> bool:
    """Return whether ``error``, or an error that it was raised from, is that of a full disk."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        # Compiled code sets no cause, and the interpreter sets the context everywhere.
        error = error.__cause__ or error.__context__
    return False


def reserve_bytes_of(file_system: FileSystem) -> int:
    """Return the bytes that a file system reserves on each data directory's disk; 0 for one in memory."""
    found: int = getattr(file_system, "reserve_bytes", 0)
    return found


class Reserve:
    """The reserve of one data directory; there is none if ``size_bytes`` is 0. Loop thread only."""

    def __init__(self, file_system: FileSystem, directory: str, size_bytes: int) -> None:
        self._file_system = file_system
        self._path = f"{directory}/{RESERVE_FILE}"
        self._size_bytes = size_bytes
        # True if the disk was full at the last write, or the reserve is incomplete.
        self.is_wanted = False

    def fill(self) -> None:
        """Make the file as large as configured, or as large as possible."""
        if not self._size_bytes:
            return
        self.is_wanted = True
        with suppress(OSError):
            file = self._open()
            try:
                # Zeros would take no room on a compressing disk.
                chunk_bytes = _CHUNK_BYTES
                while (left := self._size_bytes - file.size()) > 0:
                    try:
                        file.append([os.urandom(min(left, chunk_bytes))])
                    except OSError:
                        if chunk_bytes == _LEAST_BYTES:
                            raise
                        chunk_bytes = _LEAST_BYTES
                self.is_wanted = False
            finally:
                file.close()

    def _open(self) -> File:
        try:
            return self._file_system.open(self._path, create=True)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.EINVAL):
                raise
        # A link, or something that is not a file, is in its place.
        self._file_system.remove(self._path)
        return self._file_system.open(self._path, create=True)

    def release(self) -> bool:
        """Free the reserve for the next write. Return whether there was any. Raises OSError."""
        try:
            self._file_system.remove(self._path)
        except FileNotFoundError:
            return False
        return True

    def spend(self, write: Callable[[], T]) -> T:
        """Return the result of ``write``, repeated with the reserve if the disk is full.

        ``write`` must leave nothing when it fails.
        """
        try:
            return write()
        except Exception as error:
            if not is_full(error):
                raise
            self.is_wanted = True
            if not self.release():
                raise
        try:
            return write()
        finally:
            self.fill()
