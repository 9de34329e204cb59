"""The periodic tasks: flushing, checkpoints, retention, expiry of idle producers, removal of deleted files.

Slow disk work goes through ``Background``, on files that the loop does not write to. The result is handed back to the loop.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from odradek.common.logging import log
from odradek.protocol.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from odradek.common.config.broker_config import BrokerConfig
    from odradek.storage.directories.log_manager import LogManager
    from odradek.storage.log.flush import FlushTask
    from odradek.storage.log.log import Log
    from odradek.timing.background import Background
    from odradek.timing.timer import Timer

# The interval of the checks that the data directories still exist.
_LOOK_MS = 2000
# The delay before log start offsets are written again that a full disk has refused.
_FULL_MS = 2000
# Logs that are flushed together. Each takes some descriptors, and a process may have only a few thousand.
_FLUSHED_TOGETHER = 200
_NEVER_MS = 100 * 365 * 24 * 60 * 60 * 1000


class Housekeeping:
    """The periodic tasks of one broker. Loop thread only."""

    def __init__(self, config: BrokerConfig, log_manager: LogManager, timer: Timer, background: Background) -> None:
        self._config = config
        self._log_manager = log_manager
        self._timer = timer
        self._clock = timer.clock
        self._background = background
        self._is_flushing = False
        # The rest of the current check of all logs for old segments.
        self._deletion: Iterator[int] | None = None
        # The rest of the current writing of offsets.
        self._offsets: Iterator[None] | None = None
        log_manager.removal.remove_later = self._remove_later

    def start(self, *, looks_for_directories: bool = False) -> None:
        """Begin the tasks. ``looks_for_directories``: notice within seconds that somebody has removed a data directory."""
        config, log_manager = self._config, self._log_manager
        first_ms = config["log.initial.task.delay.ms"]
        # Full segments are flushed before recovery points are written, whatever flush.ms says: flushed segments need not be read
        # again after a crash.
        self._every(
            min(config["log.flush.scheduler.interval.ms"], config["log.flush.offset.checkpoint.interval.ms"]),
            self._flush,
            first_ms,
        )
        write_start_offsets = log_manager.checkpoints.write_start_offsets
        self._every(config["log.flush.start.offset.checkpoint.interval.ms"], write_start_offsets, first_ms)
        self._every(config["log.retention.check.interval.ms"], self.delete_old_segments, first_ms)
        if looks_for_directories:
            self._every(_LOOK_MS, log_manager.look_for_directories, _LOOK_MS)
        check_ms = config["producer.id.expiration.check.interval.ms"]
        self._every(check_ms, lambda: log_manager.expire_producers(self._clock.now_ms()), check_ms)

    def remove_deleted_after(self, delay_ms: float) -> None:
        """Free the disk of deleted partitions in ``delay_ms`` (``log.segment.delete.delay.ms``), or now if a disk is full."""
        delay_ms = 0 if self._log_manager.directories.lack_room else delay_ms
        self._timer.call_after(delay_ms, lambda: self.run_aside(self._log_manager.removed_logs.remove_all, lambda: None))

    def _remove_later(self, paths: list[str], delay_ms: int) -> None:
        """Remove the files of segments that are gone in ``delay_ms`` (``file.delete.delay.ms``), or now if a disk is full."""
        delay_ms = 0 if self._log_manager.directories.lack_room else delay_ms
        self._timer.call_after(delay_ms, partial(self._remove, paths))

    def _remove(self, paths: list[str]) -> None:
        """Remove files of segments. While log start offsets cannot be written, only truncate the files and keep their names.

        Without the file, only the log start offset tells a removed segment from a lost one.
        """
        removal = self._log_manager.removal
        if self._are_starts_written():
            self.run_aside(partial(removal.remove_files, paths), lambda: None)
            return

        def again() -> None:
            # There is room now, or there will be later.
            delay_ms = 0 if self._are_starts_written() else _FULL_MS
            self._timer.call_after(delay_ms, partial(self._remove, paths))

        self.run_aside(partial(removal.keep_names, paths), lambda: None, again)

    def _are_starts_written(self) -> bool:
        checkpoints = self._log_manager.checkpoints
        if checkpoints.lack_starts:
            _attempt(checkpoints.write_start_offsets, lambda: None, lambda: None)
        return not checkpoints.lack_starts

    def delete_old_segments(self) -> None:
        """Begin a check of all logs, unless one is under way."""
        if self._deletion is None:
            self._deletion = self._log_manager.retention.steps(self._clock.now_ms())
            self._go_on_deleting()

    def _go_on_deleting(self) -> None:
        """Do one step, and the next one after others had their turn."""
        steps, self._deletion = self._deletion, None
        if steps is not None and next(steps, None) is not None:
            self._deletion = steps
            self._timer.call_after(0, self._go_on_deleting)

    def _flush(self) -> None:
        if self._is_flushing:
            return
        now_ms = self._clock.now_ms()
        self._flush_some(self._log_manager.flusher.tasks(now_ms), now_ms)

    def _flush_some(self, tasks: Iterator[tuple[Log, FlushTask]], now_ms: int) -> None:
        """Flush some logs, then the others. A log's files are open while it is flushed."""
        due = list(islice(tasks, _FLUSHED_TOGETHER))
        is_last = len(due) < _FLUSHED_TOGETHER
        errors: list[OSError | None] = []
        self._is_flushing = True

        def over() -> None:
            self._is_flushing = not is_last
            if not is_last:
                self._timer.call_after(0, partial(self._flush_some, tasks, now_ms))

        def flushed() -> None:
            self._flushed(due, errors, now_ms, is_last=is_last)

        if due:
            self.run_aside(lambda: errors.extend(_sync([task for _, task in due])), flushed, over)
        else:
            # A test that passes a week would wait for a thread ten thousand times, for nothing.
            _attempt(flushed, lambda: None, over)

    def _flushed(self, due: list[tuple[Log, FlushTask]], errors: list[OSError | None], now_ms: int, *, is_last: bool) -> None:
        for (flushed, task), error in zip(due, errors, strict=True):
            self._log_manager.flusher.finished(flushed, task, error, now_ms)
        if is_last and self._offsets is None:
            self._offsets = self._log_manager.checkpoints.steps()
            self._go_on_writing()

    def _go_on_writing(self) -> None:
        """Do one step of writing offsets, and the next one after others had their turn."""
        steps, self._offsets = self._offsets, None
        if steps is not None:
            _attempt(lambda: self._write_some(steps), lambda: None, lambda: None)

    def _write_some(self, steps: Iterator[None]) -> None:
        for _ in steps:
            self._offsets = steps
            self._timer.call_after(0, self._go_on_writing)
            return
        self._log_manager.directories.fill_reserves()

    def run_aside(self, work: Callable[[], None], then: Callable[[], None], finally_: Callable[[], None] = lambda: None) -> None:
        """Run ``work`` in the background, then on the loop ``then`` if it succeeded, and ``finally_`` in any case."""

        def over(outcome: Future[None]) -> None:
            _attempt(outcome.result, then, finally_)

        self._background.run(work, over)

    def _every(self, interval_ms: float, action: Callable[[], object], first_ms: float) -> None:
        """Repeat ``action``, first after ``first_ms``. A failure is logged, and the action tried again at the next interval.

        An interval of more than 100 years means never.
        """
        if interval_ms > _NEVER_MS:
            return

        def run() -> None:
            _attempt(action, lambda: None, lambda: None)
            self._every(interval_ms, action, max(interval_ms, 1))

        self._timer.call_after(first_ms, run)


def _attempt(work: Callable[[], object], then: Callable[[], None], finally_: Callable[[], None]) -> None:
    try:
        work()
        then()
    except (KafkaError, OSError) as error:
        log.error("a periodic task failed", reason=str(error))
    finally:
        finally_()


def _sync(tasks: list[FlushTask]) -> list[OSError | None]:
    """Run all tasks, even if some fail. Return the error of each, None for success."""
    errors: list[OSError | None] = []
    for task in tasks:
        try:
            task.run()
        except OSError as error:
            errors.append(error)
        else:
            errors.append(None)
    return errors
