"""A disk in memory that a process is killed at, or that fails, at its n-th change."""

from tests.memory_filesystem import MemoryFile, MemoryFileSystem


class Killed(BaseException):
    """The process is gone; what the disk had is there."""


class _CountedFile:
    """A MemoryFile whose changes count."""

    def __init__(self, file, count):
        self._file = file
        self._count = count

    def __getattr__(self, name):
        return getattr(self._file, name)

    def append(self, buffers):
        self._count()
        self._file.append(buffers)

    def truncate(self, size):
        self._count()
        self._file.truncate(size)

    def sync(self):
        self._count()
        self._file.sync()


def _counted(name):
    def change(self, *arguments, **options):
        self._count()
        return getattr(MemoryFileSystem, name)(self, *arguments, **options)

    return change


class CountingFileSystem(MemoryFileSystem):
    """Raises ``fault`` in place of the ``fatal_change``-th change, if these are set; ``changes`` is how many there were."""

    def __init__(self):
        super().__init__()
        self.changes = 0
        self.fatal_change = None
        self.fault = Killed

    def _count(self):
        self.changes += 1
        if self.changes == self.fatal_change:
            raise self.fault

    def open(self, path, *, create=False):
        if create and path not in self.files:
            self._count()
        return _CountedFile(MemoryFileSystem.open(self, path, create=create), self._count)

    write_atomic = _counted("write_atomic")
    rename = _counted("rename")
    remove = _counted("remove")
    sync_dir = _counted("sync_dir")

    def copy(self):
        """The same files on a disk that counts from 0."""
        other = CountingFileSystem()
        for path, file in self.files.items():
            other.files[path] = MemoryFile()
            other.files[path].data += file.data
        other._directories |= self._directories
        return other

    def calm(self):
        """No more faults."""
        self.fatal_change = None
