"""Directories that share files by hard links, and a file system that changes files in one of them only.

A file with more than one name is copied before its first change. Files that are replaced as a whole (checkpoints) or only
removed (old segments) need no copy. The system does the copying, and clones where the disk can.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from odradek.storage.directories.checkpoints import DELETED_SUFFIX, FUTURE_SUFFIX, LOCK_FILE
from odradek.storage.directories.reserve import RESERVE_FILE
from odradek.storage.filesystem import RealFileSystem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.protocol.record_batch import Buffer
    from odradek.storage.filesystem import File, Lock

__tracebackhide__ = True

_NOT_COPIED = (LOCK_FILE, RESERVE_FILE)
# Useless after a start: files about to be removed, and unfinished files.
_LEFT_OUT = (DELETED_SUFFIX, FUTURE_SUFFIX, ".deleted", ".tmp")
_OWN = ".own"


def link_tree(source: str, target: str, *, is_new: bool = True) -> None:
    """Link the files in ``source`` into ``target``, a new or an empty directory. If links fail, the files are copied.

    A file that another thread removes meanwhile may be missing. Raises OSError.
    """
    if is_new:
        os.mkdir(target)
    with os.scandir(source) as entries:
        for entry in entries:
            name = entry.name
            if name.endswith(_LEFT_OUT) or name in _NOT_COPIED:
                continue
            if entry.is_dir(follow_symlinks=False):
                link_tree(entry.path, f"{target}/{name}")
                continue
            try:
                os.link(entry.path, f"{target}/{name}")
            except FileNotFoundError:
                continue
            except OSError:
                shutil.copyfile(entry.path, f"{target}/{name}")


def remove_content(directory: str) -> None:
    """Remove everything in ``directory``. Raises OSError."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)


class _LinkedFile:
    __slots__ = ("__weakref__", "_file", "_links_made", "_owner", "_path")

    def __init__(self, owner: LinkedFileSystem, file: File, path: str) -> None:
        self._owner = owner
        self._file = file
        self._path = path
        self._links_made = -1

    def pread(self, length: int, offset: int) -> bytes:
        return self._file.pread(length, offset)

    def append(self, buffers: Sequence[Buffer]) -> None:
        if self._links_made != self._owner.links_made:
            self._make_own()
        self._file.append(buffers)

    def size(self) -> int:
        return self._file.size()

    def truncate(self, size: int) -> None:
        if self._links_made != self._owner.links_made:
            self._make_own()
        self._file.truncate(size)

    def sync(self) -> None:
        if self._owner.syncs:
            self._file.sync()

    def close(self) -> None:
        self._file.close()

    def fileno(self) -> int | None:
        return self._file.fileno()

    def _make_own(self) -> None:
        """Make this the only name of the file. Its descriptor stays valid for slices that are being sent."""
        fd = self._file.fileno()
        assert fd is not None  # noqa: S101  a real file
        status = os.fstat(fd)
        if status.st_nlink > 1:
            if not os.path.samestat(status, os.stat(self._path)):
                raise OSError(f"{self._path} was renamed while it was open")
            shutil.copyfile(self._path, self._path + _OWN)
            os.replace(self._path + _OWN, self._path)
            own = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
            try:
                os.dup2(own, fd, inheritable=False)
            finally:
                os.close(own)
        self._links_made = self._owner.links_made


class LinkedFileSystem:
    """The machine's own file system. A file that has another name is copied before it is changed.

    ``links_made`` counts the calls of ``link_to``. With ``syncs`` false nothing is synced: for data that is removed in the end
    anyway.
    """

    def __init__(self, *, syncs: bool = True) -> None:
        self._file_system = RealFileSystem()
        self.syncs = syncs
        self.links_made = 0

    def link_to(self, directory: str, target: str) -> None:
        """Link a directory whose files may be open; see ``link_tree``."""
        self.links_made += 1
        link_tree(directory, target)

    def open(self, path: str, *, create: bool = False) -> _LinkedFile:
        """See FileSystem."""
        return _LinkedFile(self, self._file_system.open(path, create=create), path)

    def read_bytes(self, path: str) -> bytes:
        """See FileSystem."""
        return self._file_system.read_bytes(path)

    def write_atomic(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """See FileSystem."""
        self._file_system.write_atomic(path, data, durable=durable and self.syncs)

    def exists(self, path: str) -> bool:
        """See FileSystem."""
        return self._file_system.exists(path)

    def list_dir(self, path: str) -> list[str]:
        """See FileSystem."""
        return self._file_system.list_dir(path)

    def make_dirs(self, path: str) -> None:
        """See FileSystem."""
        self._file_system.make_dirs(path)

    def rename(self, source: str, target: str) -> None:
        """See FileSystem."""
        self._file_system.rename(source, target)

    def remove(self, path: str) -> None:
        """See FileSystem."""
        self._file_system.remove(path)

    def remove_tree(self, path: str) -> None:
        """See FileSystem."""
        self._file_system.remove_tree(path)

    def sync_dir(self, path: str) -> None:
        """See FileSystem."""
        if self.syncs:
            self._file_system.sync_dir(path)

    def size(self, path: str) -> int:
        """See FileSystem."""
        return self._file_system.size(path)

    def modified_ms(self, path: str) -> int:
        """See FileSystem."""
        return self._file_system.modified_ms(path)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """See FileSystem."""
        self._file_system.set_modified_ms(path, modified_ms)

    def lock(self, path: str) -> Lock:
        """See FileSystem."""
        return self._file_system.lock(path)


def remove_quietly(directory: str) -> None:
    """Remove a directory; parts of it may be gone already."""
    with suppress(OSError):
        shutil.rmtree(directory)
