"""What can be wrong with a log or a data directory, beyond what a client did."""

import errno

from odradek.protocol.errors import ErrorCode, KafkaError

# What a disk says that is broken, gone, or not to be written to any more. A full one (ENOSPC, EDQUOT), like a lack of open files
# or of memory, is a matter of the one operation: the next may go well. Kafka takes any failure for the directory's.
_DIRECTORY_FAILURE_NAMES = (
    *("EIO", "EREMOTEIO", "EUCLEAN", "EROFS", "EACCES", "EPERM", "ENOTDIR", "ELOOP"),
    *("ENODEV", "ENXIO", "ENOMEDIUM", "EMEDIUMTYPE", "ESTALE", "ENOTCONN", "ESHUTDOWN"),
)
# Not every system has all of them.
_DIRECTORY_FAILURES = frozenset(getattr(errno, name) for name in _DIRECTORY_FAILURE_NAMES if hasattr(errno, name))


class LogCorrupt(KafkaError):
    """Bytes before the end of a log are not what was written: the partition goes offline (KAFKA_STORAGE_ERROR)."""

    def __init__(self, reason: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, reason)


class UnexpectedAppendOffset(ValueError):
    """A follower's fetch begins below its log end offset, or out of reach of it (Kafka's UnexpectedAppendOffsetException).

    If the follower's log is empty it can begin again at ``first_offset``: the leader's log start offset may lie within a batch.
    """

    def __init__(self, first_offset: int, last_offset: int, log_end_offset: int) -> None:
        super().__init__(f"a batch of offsets {first_offset} to {last_offset}, and the log end offset is {log_end_offset}")
        self.first_offset = first_offset
        self.last_offset = last_offset


class OffsetsOutOfOrder(ValueError):
    """A follower has fetched batches whose offsets do not ascend (Kafka's OffsetsOutOfOrderException)."""


class DataDirectoryLocked(Exception):
    """Another broker holds the lock of this data directory."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is in use by another broker")
        self.path = path


class InconsistentDataDirectory(Exception):
    """``meta.properties`` belongs to another cluster or node, or cannot be read."""


class MoveCancelled(Exception):
    """A log is not to move any more, or is closed."""


class TargetFailed(Exception):
    """The copy of a log that moves cannot be written; ``error`` says why."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


def is_directory_failure(error: OSError) -> bool:
    """Whether ``error`` says that a whole data directory does not work, and not only what was tried."""
    return error.errno in _DIRECTORY_FAILURES
