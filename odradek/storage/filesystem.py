"""The storage package's port to files: a real disk, or memory for tests and in-process brokers.

Paths are strings. A growing file is written only at its end, by ``File.append``, and read anywhere. A small file (checkpoint,
metadata) is replaced as a whole by ``write_atomic``, so that a reader sees the old or the new content, never a part.

Write access to a data directory gives no further access: on a real disk, a symbolic link in place of a file is not followed for
writing, and only regular files are opened (a pipe would hang its reader). Directories may be symbolic links.

Left out: simulated power loss. ``sync`` and ``durable`` say which data must survive it. A simulation would use the file in
memory, which today keeps everything.
"""

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol

from odradek.protocol.record_batch import Buffer
from odradek.storage import posix
from odradek.storage.errors import NotRegularFile

# Without O_NONBLOCK, opening a pipe would wait for its other end.
_SAFE: Final = os.O_CLOEXEC | os.O_NONBLOCK
_WRITE_FLAGS: Final = os.O_RDWR | os.O_NOFOLLOW | _SAFE
_OWN_MODE: Final = 0o700


class File(Protocol):
    """A file that is appended to. All errors are OSError."""

    def pread(self, length: int, offset: int) -> bytes:
        """Return at most ``length`` bytes from ``offset``; fewer at the end of the file."""
        ...

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write all of ``buffers`` at the end, or nothing and raise."""
        ...

    def size(self) -> int:
        """Return the size in bytes."""
        ...

    def truncate(self, size: int) -> None:
        """Cut everything after ``size`` bytes."""
        ...

    def sync(self) -> None:
        """Make written data survive a crash of the machine."""
        ...

    def close(self) -> None:
        """Close the file. Idempotent. A file that is merely dropped is closed with its last reader."""
        ...

    def fileno(self) -> int | None:
        """Return the descriptor, for sendfile; None if there is none."""
        ...


class Lock(Protocol):
    """A lock that is held until it is released or the process ends."""

    def release(self) -> None:
        """Release the lock. Idempotent."""
        ...


class FileSystem(Protocol):
    """Directories and files by path. Errors are OSError: FileNotFoundError, FileExistsError, BlockingIOError for a held lock."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open a file to read and append to. A missing file is created if ``create``."""
        ...

    def read_bytes(self, path: str) -> bytes:
        """Return the whole of a small file. Raises NotRegularFile, which is also a ValueError."""
        ...

    def write_atomic(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Replace ``path`` as a whole. Unless ``durable``, it survives the process but perhaps not the machine."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory."""
        ...

    def list_dir(self, path: str) -> list[str]:
        """Return the names in a directory, in any order."""
        ...

    def make_dirs(self, path: str) -> None:
        """Create a directory and its missing parents."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Move a file or directory. Open files stay readable."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file."""
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a directory and its content."""
        ...

    def sync_dir(self, path: str) -> None:
        """Make the names in a directory survive a crash of the machine."""
        ...

    def size(self, path: str) -> int:
        """Return a file's size in bytes."""
        ...

    def modified_ms(self, path: str) -> int:
        """Return when a file was last written, in ms since the epoch; -1 if unknown."""
        ...

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Set when a file was last written; -1 changes nothing."""
        ...

    def lock(self, path: str) -> Lock:
        """Lock the file at ``path``, created if needed."""
        ...


def _size_of(fd: int, path: str) -> int:
    """Return the size of an open file. Closes it and raises OSError if it is not a regular file."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise NotRegularFile(errno.EINVAL, "Not a regular file", path)
    return status.st_size


def _open_to_read(path: str, flags: int) -> int:
    try:
        fd = os.open(path, flags | _SAFE)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise NotRegularFile(error.errno, error.strerror, path) from None
    _size_of(fd, path)
    return fd


class RealFile:
    """A file on disk. Its size is kept here, as there is no other writer."""

    __slots__ = ("_fd", "_has_rest", "_path", "_size")

    def __init__(self, fd: int, path: str) -> None:
        self._size = _size_of(fd, path)
        self._fd = fd
        self._path = path
        # True if bytes of a failed append may lie beyond ``_size``, as they could not be cut off.
        self._has_rest = False

    def pread(self, length: int, offset: int) -> bytes:
        """Return at most ``length`` bytes from ``offset``."""
        return os.pread(self._fd, length, offset)

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write all of ``buffers`` at the end, in one system call unless the disk accepts only a part."""
        start = self._size
        total = 0
        try:
            if len(buffers) == 1:
                total = len(buffers[0])
                written = os.pwrite(self._fd, buffers[0], start)
            else:
                total = sum(map(len, buffers))
                if len(buffers) <= posix.MOST_BUFFERS:
                    written = os.pwritev(self._fd, buffers, start)
                else:
                    written = os.pwrite(self._fd, b"".join(buffers), start)
            if written != total:
                self._finish_append(b"".join(buffers), start)
        except OSError as error:
            self._cut_rest()
            raise OSError(error.errno, error.strerror, self._path) from None
        self._size = start + total

    def _finish_append(self, data: bytes, start: int) -> None:
        """Write ``data`` again from ``start`` after a short write."""
        view = memoryview(data)
        while view:
            view = view[os.pwrite(self._fd, view, start + len(data) - len(view)) :]

    def _cut_rest(self) -> None:
        """Remove the bytes of a failed append. If even that fails, ``sync`` tries again."""
        self._has_rest = True
        with suppress(OSError):
            self.truncate(self._size)

    def size(self) -> int:
        """Return the size as of the last append or truncation."""
        return self._size

    def truncate(self, size: int) -> None:
        """Cut the file to ``size``, where appends continue."""
        os.ftruncate(self._fd, size)
        self._size = size
        self._has_rest = False

    def sync(self) -> None:
        """Sync data and size, but not times."""
        if self._has_rest:
            self.truncate(self._size)
        posix.sync_data(self._fd)

    def close(self) -> None:
        """Close the descriptor. Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._fd

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            os.close(self._fd)


class RealLock:
    """An advisory lock on a whole file, like Kafka's on ``.lock``. The two conflict with each other."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        """Release the lock. Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class RealFileSystem:
    """The machine's file system. Keeps ``reserve_bytes`` on each data directory's disk (``directories.data_directory``)."""

    def __init__(self, reserve_bytes: int = 0) -> None:
        self.reserve_bytes = reserve_bytes

    def open(self, path: str, *, create: bool = False) -> RealFile:
        """Open a file on disk."""
        flags = _WRITE_FLAGS | os.O_CREAT if create else _WRITE_FLAGS
        return RealFile(os.open(path, flags, 0o644), path)

    def read_bytes(self, path: str) -> bytes:
        """Return the whole of a small file."""
        with open(path, "rb", buffering=0, opener=_open_to_read) as file:
            return file.read()

    def write_atomic(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Replace ``path`` by way of ``<path>.tmp``."""
        temporary = path + ".tmp"
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        # Never open an existing file here: it may be a link.
        with open(temporary, "xb", buffering=0) as file:
            view = memoryview(data)
            try:
                while view:
                    # A nearly full disk accepts a part, and refuses the next.
                    view = view[file.write(view) :]
                if durable:
                    posix.sync(file.fileno())
            except OSError as error:
                # A leftover part would take the space that is about to be freed.
                file.truncate(0)
                raise OSError(error.errno, error.strerror, path) from None
        os.replace(temporary, path)
        if durable:
            self.sync_dir(os.path.dirname(path))

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory."""
        return os.path.exists(path)

    def list_dir(self, path: str) -> list[str]:
        """Return the names in a directory."""
        return os.listdir(path)

    def make_dirs(self, path: str) -> None:
        """Create a directory and its missing parents. Only its owner may look into it: logs and metadata have secrets."""
        os.makedirs(path, _OWN_MODE, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        """Move a file or directory."""
        os.rename(source, target)

    def remove(self, path: str) -> None:
        """Remove a file."""
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        """Remove a directory and all that is in it."""
        for entry in os.scandir(path):
            if entry.is_dir(follow_symlinks=False):
                self.remove_tree(entry.path)
            else:
                os.unlink(entry.path)
        os.rmdir(path)

    def sync_dir(self, path: str) -> None:
        """Sync the names in a directory."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            posix.sync(fd)
        finally:
            os.close(fd)

    def size(self, path: str) -> int:
        """Return a file's size in bytes."""
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        """Return when a file was last written, in ms since the epoch."""
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Set a file's times."""
        if modified_ms >= 0:
            os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def lock(self, path: str) -> RealLock:
        """Lock a file against other processes, and against other locks in this one."""
        fd = os.open(path, _WRITE_FLAGS | os.O_CREAT, 0o644)
        try:
            posix.lock(fd)
        except OSError as error:
            os.close(fd)
            raise BlockingIOError(error.errno, "held by another process", path) from error
        return RealLock(fd)
