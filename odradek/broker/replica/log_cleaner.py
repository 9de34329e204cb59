"""Compaction in the background: which log is next, the thread that cleans it, and what came of it.

Every ``log.cleaner.backoff.ms`` the dirtiest log that is due is looked for, and cleaned (odradek.storage.cleaner); then at once
the next. There is one thread, whatever ``log.cleaner.threads`` says: Python runs one at a time. It lives for one clean, reads
files that the loop does not write any more, and has done on the loop what concerns the log. It works in slices of half a
millisecond, and while the broker has anything to do it rests four times as long as each took, 100 ms at most; and the
interpreter changes threads more often meanwhile. So what a request waits for it is short, and rare.

With a clock other than the system's (tests, simulation) a clean is done at once, where it was due.

A log that cannot be cleaned is left alone until the next start, with a warning, and counted.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from odradek.broker.logging import log as broker_log
from odradek.storage.cleaner.candidates import choose
from odradek.timing.other_threads import OtherThreads
from odradek.timing.system_clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.storage.cleaner.candidates import Candidate
    from odradek.storage.cleaner.cleaner import CleanerLimits, CleanStats
    from odradek.storage.cleaner.job import CleanJob
    from odradek.storage.cleaner.swap import OnLoop
    from odradek.storage.log import Log
    from odradek.storage.log_manager import LogManager
    from odradek.timing.clock import Clock
    from odradek.timing.timer import Timer

T = TypeVar("T")

_SLICE_MS = 0.5
# How long it rests after a slice, as a multiple of that: while nobody else computes, or as good as nobody, and else. That is
# looked at every so often.
_ALONE_REST, _BUSY_REST = 0.1, 4.0
_ALONE_SHARE = 0.02
# No rest is longer. What a slice took is mostly waiting for the interpreter where the loop computes all the time.
_LONGEST_REST_MS = 100.0
_LOOK_MS = 100.0
# How long the interpreter lets one thread run while another waits, while there is a clean: 5 ms is its default.
_SWITCH_INTERVAL_S = 0.0002


class LogCleaner:
    """The one cleaner of a broker. Loop thread only, but for the work itself.

    Counters are for the metrics: ``uncleanable`` logs, the last clean's ``last_stats`` and how long it took in ``last_clean_ms``,
    when there was a look last in ``last_look_ms`` (since the epoch), and the dirty ratio that was the largest then.
    """

    def __init__(self, config: BrokerConfig, log_manager: LogManager, timer: Timer) -> None:
        self.uncleanable: dict[tuple[str, int], Log] = {}
        self.last_stats: CleanStats | None = None
        self.last_clean_ms = 0.0
        self.last_look_ms = timer.clock.now_ms()
        self.max_dirty_ratio = 0.0
        self.cleans = 0
        self._config = config
        self._log_manager = log_manager
        self._timer = timer
        self._clock = timer.clock
        self._in_thread = isinstance(self._clock, SystemClock)
        self._stop = threading.Event()
        self._ended: asyncio.Future[None] | None = None
        if config["log.cleaner.enable"]:
            self._look_later()

    async def finish(self) -> None:
        """Give up the clean that is under way, and wait until its thread has ended; the timer is the owner's to stop."""
        self._stop.set()
        if self._ended is not None:
            await self._ended

    def clean_due(self) -> None:
        """Look now, and clean what is due."""
        if self._ended is not None:
            return
        while (candidate := self._choose()) is not None:
            job = self._begin(candidate)
            if job is None:
                continue
            if self._in_thread:
                self._start_thread(job)
                return
            self._run(job, _at_once)

    def _look_later(self) -> None:
        # Not less than a millisecond, however little is asked for: under a virtual clock no time would pass.
        self._timer.call_after(max(self._config["log.cleaner.backoff.ms"], 1), self._look)

    def _look(self) -> None:
        self._look_later()
        self.clean_due()

    def _choose(self) -> Candidate | None:
        self.last_look_ms = self._clock.now_ms()
        logs = self._log_manager.logs
        self.uncleanable = {key: log for key, log in self.uncleanable.items() if logs.get(key) is log}
        found, failed = choose(self._cleanable(logs.values()), self.last_look_ms, broker_log.warn)
        for log, error in failed:
            self._give_up(log, error)
        self.max_dirty_ratio = 0.0 if found is None else found.dirty_ratio
        return None if self._stop.is_set() else found

    def _cleanable(self, logs: Iterable[Log]) -> list[Log]:
        # One that moves to another directory says that it is being cleaned, too.
        return [
            log
            for log in logs
            if log.config.is_compacted and not log.is_being_cleaned and (log.topic, log.partition) not in self.uncleanable
        ]

    def _begin(self, candidate: Candidate) -> CleanJob | None:
        from odradek.storage.cleaner.job import CleanJob

        log = candidate.log
        try:
            job = CleanJob.of(log, candidate.first_dirty_offset, candidate.first_uncleanable_offset, self._clock.now_ms())
        except Exception as error:  # noqa: BLE001  whatever it is, the next log is not to wait for it
            self._give_up(log, error)
            return None
        log.is_being_cleaned = True
        return job

    def _start_thread(self, job: CleanJob) -> None:
        loop = asyncio.get_running_loop()
        ended = self._ended = loop.create_future()

        def work() -> None:
            switch_interval_s = sys.getswitchinterval()
            sys.setswitchinterval(min(switch_interval_s, _SWITCH_INTERVAL_S))
            try:
                self._run(job, partial(_on_loop, loop))
            finally:
                sys.setswitchinterval(switch_interval_s)
                loop.call_soon_threadsafe(end)

        def end() -> None:
            self._ended = None
            ended.set_result(None)
            if not self._stop.is_set():
                self.clean_due()

        threading.Thread(target=work, name="log-cleaner", daemon=True).start()

    def _run(self, job: CleanJob, on_loop: OnLoop) -> None:
        """Clean, and have noted on the loop what came of it. In any thread."""
        from odradek.storage.cleaner.job import CleaningAborted
        from odradek.storage.cleaner.run import clean_log

        started_ms = self._clock.monotonic_ms()
        pace = _Pace(job.log, self._clock, self._stop, self._config["log.cleaner.io.max.bytes.per.second"])
        try:
            stats = clean_log(job, self._limits(), pace if self._in_thread else lambda _: None, on_loop)
        except CleaningAborted:
            on_loop(lambda: self._aborted(job.log))
        except Exception as error:  # noqa: BLE001  as Kafka: whatever it was, this log is left alone from now on
            failure = error
            on_loop(lambda: self._failed(job.log, failure))
        else:
            on_loop(lambda: self._cleaned(job, stats, self._clock.monotonic_ms() - started_ms))

    def _limits(self) -> CleanerLimits:
        from odradek.storage.cleaner.cleaner import CleanerLimits

        config = self._config
        return CleanerLimits(
            dedupe_buffer_bytes=config["log.cleaner.dedupe.buffer.size"],
            load_factor=config["log.cleaner.io.buffer.load.factor"],
            io_buffer_bytes=max(config["log.cleaner.io.buffer.size"] // 2, 1024),
        )

    def _cleaned(self, job: CleanJob, stats: CleanStats, took_ms: float) -> None:
        job.log.is_being_cleaned = False
        self.cleans += 1
        self.last_stats = stats
        self.last_clean_ms = took_ms
        if job.log.is_closed:
            return
        job.log.cleaned_offset = stats.end_offset
        try:
            self._log_manager.write_cleaned_offsets()
        except OSError as error:
            # After a crash it is cleaned once more.
            broker_log.warn("cleaner offsets not written", reason=str(error))
        if stats.keyless_records:
            broker_log.warn(
                "records without a key dropped from a compacted log",
                topic=job.log.topic,
                partition=job.log.partition,
                records=stats.keyless_records,
            )

    def _aborted(self, log: Log) -> None:
        log.is_being_cleaned = False

    def _failed(self, log: Log, error: Exception) -> None:
        log.is_being_cleaned = False
        if not log.is_closed:
            self._give_up(log, error)

    def _give_up(self, log: Log, error: Exception) -> None:
        if isinstance(error, OSError):
            # Perhaps it is the directory that has failed.
            log.storage_error(error)
        self.uncleanable[log.topic, log.partition] = log
        broker_log.warn("log not compacted any more", topic=log.topic, partition=log.partition, reason=str(error))


class _Pace:
    """Holds the thread back, and tells it to end. Called with the bytes that were read and written since."""

    def __init__(self, log: Log, clock: Clock, stop: threading.Event, bytes_per_second: float) -> None:
        self._log = log
        self._clock = clock
        self._stop = stop
        self._bytes_per_ms = bytes_per_second / 1000
        self._bytes = 0
        self._others = OtherThreads()
        self._is_alone = False
        self._began_ms = self._looked_ms = self._resumed_ms = clock.monotonic_ms()

    def __call__(self, size_bytes: int) -> None:
        from odradek.storage.cleaner.job import CleaningAborted

        if self._stop.is_set() or self._log.is_closed:
            raise CleaningAborted
        self._bytes += size_bytes
        now_ms = self._clock.monotonic_ms()
        worked_ms = now_ms - self._resumed_ms
        ahead_ms = self._bytes / self._bytes_per_ms - (now_ms - self._began_ms)
        if worked_ms < _SLICE_MS and ahead_ms < _SLICE_MS:
            return
        if now_ms - self._looked_ms > _LOOK_MS:
            self._is_alone = self._others.used_ms() < _ALONE_SHARE * (now_ms - self._looked_ms)
            self._looked_ms = now_ms
        rest_ms = (_ALONE_REST if self._is_alone else _BUSY_REST) * worked_ms
        self._stop.wait(max(min(rest_ms, _LONGEST_REST_MS), ahead_ms) / 1000)
        self._resumed_ms = self._clock.monotonic_ms()


def _at_once(action: Callable[[], T]) -> T:
    return action()


def _on_loop(loop: asyncio.AbstractEventLoop, action: Callable[[], T]) -> T:
    """Run ``action`` on the loop, from another thread, and wait for what it returns or raises."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(action())
        except BaseException as error:  # noqa: BLE001  it is raised where it was asked for
            future.set_exception(error)

    loop.call_soon_threadsafe(run)
    return future.result()
