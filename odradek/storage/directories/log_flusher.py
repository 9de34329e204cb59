"""Background flushes: of logs whose ``flush.ms`` has passed, and of segments that are no longer written to."""

import errno
from collections.abc import Callable, Iterator, Mapping

from odradek.storage.directories.data_directory import Partition
from odradek.storage.log.flush import FlushTask
from odradek.storage.log.log import Log
from odradek.storage.recovery.recovery import Warn

_TOO_MANY_FILES = {errno.EMFILE, errno.ENFILE}


class LogFlusher:
    """Prepares the due flushes of ``logs``, and takes their results. Loop thread only; the tasks run in any thread."""

    def __init__(self, logs: Mapping[Partition, Log], on_error: Callable[[Log, OSError], object], warn: Warn) -> None:
        """Take ``on_error``, which is called with each disk error."""
        self._logs = logs
        self._on_error = on_error
        self._warn = warn

    def tasks(self, now_ms: int) -> Iterator[tuple[Log, FlushTask]]:
        """Yield the due flushes. Each must be run, and its result passed to ``finished``.

        Each is prepared on demand, and holds files of its log open until it has been run and dropped. A log whose flush cannot be
        prepared waits for the next call, with a warning.
        """
        for log in list(self._logs.values()):
            if self._logs.get(log.topic_partition) is not log:
                continue
            state = log.flush_state
            is_due = state.recovery_point < log.log_end_offset and now_ms - state.last_flush_ms >= log.config.flush_ms
            if log.has_lost_sync or not (is_due or state.recovery_point < log.segments.active.base_offset):
                continue
            try:
                task = state.flush_task(active=is_due)
            except OSError as error:
                self._warn("cannot flush a log", topic=log.topic, partition=log.partition, reason=str(error))
                self._on_error(log, error)
            else:
                yield log, task

    def finished(self, log: Log, task: FlushTask, error: OSError | None, now_ms: int) -> None:
        """Give ``log`` the result of its flush, ``error`` if it failed. Ignores a log deleted meanwhile."""
        if self._logs.get(log.topic_partition) is not log:
            return
        if error is None:
            log.flush_state.flushed(task, now_ms)
        elif error.errno in _TOO_MANY_FILES:
            # A directory could not be opened. Files synced so far are synced; the next flush covers the rest.
            self._warn("cannot flush a log", topic=log.topic, partition=log.partition, reason=str(error))
        else:
            log.flush_state.sync_failed(error)
            self._warn("log out of service: it cannot be synced", topic=log.topic, partition=log.partition, reason=str(error))
