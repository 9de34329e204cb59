"""The state of a broker at one moment, to start brokers from: the content of its disk, its clock, its configs.

In memory, an image shares its bytes with all disks made from it. On a disk, an image is a directory of hard links beside the
broker's own. Directories made from the image are hard links, too. All of them are removed in the end.

A ``LinkedFileSystem`` changes files in one such directory only. A file with more than one name is copied before its first
change. Files that are replaced as a whole (checkpoints) or only removed (old segments) need no copy. The system does the
copying, and clones where the disk can.

A data directory in use is copied so that a start finds it as after a clean stop. First the logs write out their state in
memory. Then the caller copies the files, within the same turn of the loop. Last, the copy gets the checkpoints and the marker
of a clean stop. Nothing is synced here: the caller decides how durable the copy is.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, NamedTuple
from weakref import finalize

from odradek.storage.directories import checkpoints
from odradek.storage.directories.checkpoints import DELETED_SUFFIX, FUTURE_SUFFIX, LOCK_FILE
from odradek.storage.directories.data_directory import METADATA_LOG, RESERVE_FILE, DataDirectory, clean_marker
from odradek.storage.directories.upkeep import aborted_of
from odradek.storage.filesystem import FileSystem, RealFileSystem
from odradek.testing.disk import MemoryDisk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.broker.start.server import Broker as BrokerCore
    from odradek.protocol.record_batch import Buffer
    from odradek.storage.directories.log_manager import LogManager
    from odradek.storage.filesystem import File, Lock
    from odradek.storage.log.log import Log
    from odradek.testing.steered_clock import SteeredClock

__tracebackhide__ = True

_NOT_COPIED = (LOCK_FILE, RESERVE_FILE)
# Useless after a start: files about to be removed, and unfinished files.
_EXCLUDED_SUFFIXES = (DELETED_SUFFIX, FUTURE_SUFFIX, ".deleted", ".tmp")
_OWN = ".own"


def link_tree(source: str, target: str, *, is_new: bool = True) -> None:
    """Link the files in ``source`` into ``target``, a new or an empty directory. If links fail, the files are copied.

    A file that another thread removes meanwhile may be missing. Raises OSError.
    """
    if is_new:
        os.mkdir(target, 0o700)
    with os.scandir(source) as entries:
        for entry in entries:
            name = entry.name
            if name.endswith(_EXCLUDED_SUFFIXES) or name in _NOT_COPIED:
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


def write_out(log_manager: LogManager) -> None:
    """Before the copy: write index entries and producers of every log that has unwritten ones. Raises KafkaError, OSError."""
    for log in log_manager.logs.values():
        if not _is_broken(log):
            log.write_out()


def mark_stopped(log_manager: LogManager, directory: DataDirectory, file_system: FileSystem, path: str) -> None:
    """Write the checkpoints and the clean-stop marker into the copy of ``directory`` at ``path``. Raises OSError.

    The marker is left out if a start must recover logs.
    """
    logs = {key: log for key, log in log_manager.logs.items() if log_manager.home_of(log) is directory}
    offline = {key: None for key, home in log_manager.offline_homes.items() if home is directory}
    start_offsets = {key: log.log_start_offset for key, log in logs.items() if log.log_start_offset}
    end_offsets = {key: log.log_end_offset for key, log in logs.items()}
    cleaned_offsets = {key: log.cleaned_offset for key, log in logs.items() if log.cleaned_offset is not None}
    synced = log_manager.checkpoints.metadata_synced
    if synced is not None and directory is log_manager.directories.metadata:
        end_offsets[METADATA_LOG] = synced()
    for name, offsets in (
        (checkpoints.LOG_START_FILE, start_offsets),
        (checkpoints.RECOVERY_POINT_FILE, end_offsets),
        (checkpoints.CLEANER_OFFSET_FILE, cleaned_offsets),
    ):
        held = directory.held_of(name, offline)
        if held or offsets:
            lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in {**held, **offsets}.items()]
            checkpoints.write_table(file_system, f"{path}/{name}", lines, durable=False)
    aborted = {key: found for key, log in logs.items() if (found := aborted_of(log))}
    kept = {key: found for key, found in directory.aborted.items() if key in offline}
    checkpoints.write_aborted(file_system, f"{path}/{checkpoints.ABORTED_FILE}", {**kept, **aborted})
    if not offline and not directory.failure and not any(map(_is_broken, logs.values())):
        file_system.write_atomic(f"{path}/{checkpoints.CLEAN_SHUTDOWN_FILE}", clean_marker(), durable=False)


def _is_broken(log: Log) -> bool:
    """Return whether bytes may lie after the log's end, or a sync has failed."""
    return log.flush_state.has_failed_append or bool(log.flush_state.sync_error)


_CONTENT = "data"


class LinkedDirectory:
    """A directory of hard links beside the directory it was made from. It is removed with this object at the latest."""

    def __init__(self, beside: str, kind: str) -> None:
        """Make the directory's place; ``kind`` is "snapshot" or "fork". Raises OSError."""
        place = Path(beside).absolute()
        self._holder = mkdtemp(prefix=f"{place.name}.{kind}-", dir=place.parent)
        self.path = f"{self._holder}/{_CONTENT}"
        self._remove = finalize(self, remove_quietly, self._holder)

    @property
    def is_removed(self) -> bool:
        """Return whether the directory was removed."""
        return not self._remove.alive

    def remove(self) -> None:
        """Remove the directory. Idempotent."""
        self._remove()


class Image(NamedTuple):
    """A broker's state at one moment. ``origin`` is the directory that the broker had; None for one in memory."""

    content: MemoryDisk | LinkedDirectory
    origin: str | None
    clock: SteeredClock
    configs: Mapping[str, str]
    has_own_configs: bool

    @classmethod
    def of(
        cls, core: BrokerCore, disk: FileSystem, clock: SteeredClock, configs: Mapping[str, str], *, has_own_configs: bool = True
    ) -> Image:
        """Make the image of a running broker, between two turns of its loop.

        Raises OSError, KafkaError, and TypeError for a disk that is neither in memory nor one directory.
        """
        directories = core.log_manager.directories.all
        write_out(core.log_manager)
        content: MemoryDisk | LinkedDirectory
        origin = None
        if isinstance(disk, MemoryDisk):
            content = disk.fork()
            for directory in directories:
                mark_stopped(core.log_manager, directory, content, directory.path)
        elif isinstance(disk, LinkedFileSystem) and len(directories) == 1:
            # The configs win over the directory that the broker was made with.
            origin = directories[0].path
            content = LinkedDirectory(origin, "snapshot")
            disk.link_to(origin, content.path)
            mark_stopped(core.log_manager, directories[0], LinkedFileSystem(), content.path)
        else:
            raise TypeError("cannot take a snapshot of this broker: it has several data directories")
        return cls(content, origin, clock.copy(), configs, has_own_configs)

    def fits(self, core: BrokerCore, disk: FileSystem) -> bool:
        """Return whether the broker ``core`` on ``disk`` can be restored from this image."""
        if isinstance(self.content, MemoryDisk):
            return isinstance(disk, MemoryDisk)
        return isinstance(disk, LinkedFileSystem) and len(core.log_manager.directories.all) == 1

    def bring_to(self, disk: FileSystem, directory: str) -> FileSystem:
        """Restore the disk of a stopped broker for which ``fits`` was true, and return the disk. Raises OSError.

        On a real disk, the content of the broker's ``directory`` is removed first.
        """
        if isinstance(self.content, MemoryDisk):
            return self.content.fork()
        remove_content(directory)
        link_tree(self.content.path, directory, is_new=False)
        return disk

    def fork_configs(self) -> dict[str, str]:
        """Return the configs of a fork: it listens on ports of its own, and has a directory of its own on a disk."""
        configs = dict(self.configs)
        if isinstance(self.content, LinkedDirectory):
            for name in ("log.dirs", "log.dir", "metadata.log.dir"):
                configs.pop(name, None)
        configs.pop("advertised.listeners", None)
        if "listeners" in configs:
            configs["listeners"] = re.sub(r":\d+(?=\s*(,|$))", ":0", configs["listeners"])
        return configs
