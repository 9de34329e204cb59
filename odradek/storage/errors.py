"""Errors of logs and data directories not caused by clients, and the report of those that may mean a failed directory."""

import errno
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

# Errors of a disk that is broken, gone, or read-only. A full disk (ENOSPC, EDQUOT), or a lack of descriptors or memory, fails
# only one operation: the next may succeed. A symbolic link in place of a file (ELOOP) concerns only that file. Kafka takes a
# directory offline after any error.
_DIRECTORY_FAILURE_NAMES = (
    *("EIO", "EREMOTEIO", "EUCLEAN", "EROFS", "EACCES", "EPERM", "ENOTDIR"),
    *("ENODEV", "ENXIO", "ENOMEDIUM", "EMEDIUMTYPE", "ESTALE", "ENOTCONN", "ESHUTDOWN"),
)
# Not every system has all of them.
_DIRECTORY_FAILURES = frozenset(getattr(errno, name) for name in _DIRECTORY_FAILURE_NAMES if hasattr(errno, name))


class LogCorrupt(KafkaError):
    """A log was damaged before its end: the partition goes offline (KAFKA_STORAGE_ERROR)."""

    def __init__(self, reason: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, reason)

    def __reduce__(self) -> tuple[type["LogCorrupt"], tuple[str]]:
        """Support pickling by the cleaner's process."""
        return LogCorrupt, (self.reason,)


def unknown_format(place: str, magic: int) -> LogCorrupt:
    """Return the error for a batch that may be of a later format. It is neither read nor cut off."""
    return LogCorrupt(f"{place}: a batch with magic {magic}, an unknown format; its bytes are left unchanged")


class UnexpectedAppendOffset(ValueError):
    """A follower's fetch begins below its log end offset, or out of reach of it (Kafka's UnexpectedAppendOffsetException).

    If the follower's log is empty, it can begin again at ``first_offset``: the leader's log start offset may lie within a batch.
    """

    def __init__(self, first_offset: int, last_offset: int, log_end_offset: int) -> None:
        super().__init__(f"a batch has offsets {first_offset} to {last_offset}, but the log end offset is {log_end_offset}")
        self.first_offset = first_offset
        self.last_offset = last_offset


class OffsetsOutOfOrder(ValueError):
    """A follower has fetched batches whose offsets do not ascend (Kafka's OffsetsOutOfOrderException)."""


class NotRegularFile(OSError, ValueError):
    """A pipe, a directory, or a dangling symbolic link in place of a small file, which counts as unreadable."""


class DataDirectoryLocked(Exception):
    """Another broker, or a local cluster, holds the lock of this data directory."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is in use by another broker, or by odradek cluster")
        self.path = path


class InconsistentDataDirectory(Exception):
    """``meta.properties`` belongs to another cluster or node, or cannot be read."""


class MoveCancelled(Exception):
    """The move of a log was cancelled, or the log was closed or truncated."""


class TargetFailed(Exception):
    """The copy of a moving log cannot be written; ``error`` says why."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


def is_directory_failure(error: OSError) -> bool:
    """Return whether ``error`` means that the whole data directory has failed, not only the one operation."""
    return error.errno in _DIRECTORY_FAILURES


class DiskErrors:
    """The disk errors of one data directory's logs. ``on_error`` is called with each; the LogManager sets it."""

    __slots__ = ("on_error",)

    def __init__(self) -> None:
        self.on_error: Callable[[OSError], object] | None = None

    def report(self, error: OSError) -> KafkaError:
        """Report ``error``, and return the KAFKA_STORAGE_ERROR for the client."""
        if self.on_error is not None:
            self.on_error(error)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
