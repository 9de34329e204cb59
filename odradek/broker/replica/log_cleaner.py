"""Compaction in the background: the choice of the next log, the thread that cleans it, and the outcome.

Every ``log.cleaner.backoff.ms``, the cleaner looks for the dirtiest log that is due and cleans it (odradek.storage.cleaning),
then the next one at once. One clean runs at a time, whatever ``log.cleaner.threads`` says. It lives on a thread
(``Background.run_long``), which runs on the loop everything that touches the log. The work itself is done in one of two ways:

- ``odradek serve`` uses a separate process (odradek.broker.replica.cleaner_process), which does not share the interpreter with
  requests.
- A broker in its user's process starts no other process. The thread cleans in slices of half a millisecond. While the broker
  is busy, the thread rests after each slice, four times as long as the slice took and at most 100 ms.

If the process is killed, the log is cleaned after the next look. A log that cannot be cleaned is skipped until the next start.
It is counted, and a warning is logged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.common.logging import log as broker_log
from odradek.storage.cleaning.candidates import choose
from odradek.storage.cleaning.cleaner import Throttle
from odradek.timing.system_clock import OtherThreads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future

    from odradek.broker.replica.cleaner_process import CleanerProcess
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.storage.cleaning.candidates import Candidate
    from odradek.storage.cleaning.cleaner import CleanerLimits, CleanStats, SwapIn
    from odradek.storage.cleaning.swap import CleanJob
    from odradek.storage.directories.log_manager import LogManager
    from odradek.storage.log.log import Log
    from odradek.timing.background import Background, Beside, LongWork
    from odradek.timing.clock import Clock
    from odradek.timing.timer import Timer

_SLICE_MS = 0.5
# The rest after a slice, as a multiple of the slice: while other threads compute (almost) nothing, and otherwise. This is
# checked every _LOOK_MS.
_ALONE_REST, _BUSY_REST = 0.1, 4.0
_ALONE_SHARE = 0.02
# The longest rest. While the loop is busy, a slice mostly waits for the interpreter.
_LONGEST_REST_MS = 100.0
_LOOK_MS = 100.0


class LogCleaner:
    """The only cleaner of a broker. Loop thread only, except for the work itself.

    Metrics: the ``uncleanable`` logs, ``last_stats`` and ``last_clean_ms`` (duration) of the last clean, the time of the last
    look ``last_look_ms`` (since the epoch), and the largest dirty ratio found by it.
    """

    def __init__(
        self, config: BrokerConfig, log_manager: LogManager, timer: Timer, background: Background, *, in_process: bool = False
    ) -> None:
        """``in_process``: whether a separate process does the work, on the machine's own file system."""
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
        self._background = background
        self._is_closed = False
        # The log that is being cleaned, how to abort that, and whether logs are being chosen, one after the other.
        self._cleaning: Log | None = None
        self._work: LongWork | None = None
        self._is_choosing = False
        self._in_process = in_process
        # The process that did the last clean. The current clean's thread may replace it.
        self._process: CleanerProcess | None = None
        if config["log.cleaner.enable"]:
            self._look_later()

    @property
    def is_cleaning(self) -> bool:
        """Return whether a log is being cleaned."""
        return self._cleaning is not None

    def close(self) -> None:
        """Clean no more, and abort the current clean. The owner stops the timer."""
        self._is_closed = True
        if self._work is not None:
            self._work.cancel()

    def clean_due(self) -> None:
        """Look for due logs now, and clean them."""
        if self._is_choosing:
            return
        self._is_choosing = True
        try:
            while self._cleaning is None and (candidate := self._choose()) is not None:
                job = self._begin(candidate)
                if job is not None:
                    self._start(job)
        finally:
            self._is_choosing = False

    def _look_later(self) -> None:
        # At least a millisecond, whatever is configured: under a virtual clock no time would pass otherwise.
        self._timer.call_after(max(self._config["log.cleaner.backoff.ms"], 1), self._look)

    def _look(self) -> None:
        self._look_later()
        self.clean_due()

    def _choose(self) -> Candidate | None:
        self.last_look_ms = self._clock.now_ms()
        logs = self._log_manager.logs
        self.uncleanable = {key: log for key, log in self.uncleanable.items() if logs.get(key) is log}
        replicated_offset = self._log_manager.checkpoints.replicated_offset
        found, failed = choose(self._cleanable(logs.values()), self.last_look_ms, broker_log.warn, replicated_offset)
        for log, error in failed:
            self._give_up(log, error)
        self.max_dirty_ratio = 0.0 if found is None else found.dirty_ratio
        return None if self._is_closed else found

    def _cleanable(self, logs: Iterable[Log]) -> list[Log]:
        # A log that moves to another directory is marked as being cleaned, too.
        return [
            log
            for log in logs
            if log.config.is_compacted and not log.is_being_cleaned and log.topic_partition not in self.uncleanable
        ]

    def _begin(self, candidate: Candidate) -> CleanJob | None:
        from odradek.storage.cleaning.swap import CleanJob

        log = candidate.log
        try:
            job = CleanJob.of(log, candidate.first_dirty_offset, candidate.first_uncleanable_offset, self._clock.now_ms())
        except Exception as error:  # noqa: BLE001  no error of one log may hold up the next
            self._give_up(log, error)
            return None
        log.is_being_cleaned = True
        return job

    def _start(self, job: CleanJob) -> None:
        self._cleaning = job.log
        work = self._background.run_long(
            lambda beside: self._clean(job, beside), lambda outcome: self._over(job, outcome), name="log-cleaner"
        )
        # It may be over already.
        if self._cleaning is not None:
            self._work = work

    def _clean(self, job: CleanJob, beside: Beside) -> tuple[CleanStats, float]:
        """Do the work, in any thread. Return its stats, and how long it took in milliseconds."""
        from odradek.storage.cleaning.swap import clean_log

        started_ms = self._clock.monotonic_ms()
        stats = clean_log(job, self._in_its_process(job, beside) or self._in_this_thread(job, beside), beside.on_loop)
        return stats, self._clock.monotonic_ms() - started_ms

    def _in_this_thread(self, job: CleanJob, beside: Beside) -> Callable[[SwapIn], CleanStats]:
        from odradek.storage.cleaning.cleaner import clean

        pace = _Pace(job.log, self._clock, beside, self._config["log.cleaner.io.max.bytes.per.second"])
        return lambda swap_in: clean(job.plan, job.log.file_system, self._limits(), pace, swap_in)

    def _in_its_process(self, job: CleanJob, beside: Beside) -> Callable[[SwapIn], CleanStats] | None:
        """Return the clean as done by the process; None if no process is wanted, or none can be started."""
        if not self._in_process:
            return None
        from odradek.broker.replica.cleaner_process import CleanerProcess, CleanOrder
        from odradek.storage.cleaning.cleaner import CleaningAborted

        try:
            process = self._process or CleanerProcess()
        except OSError as error:
            broker_log.warn("cannot start the cleaner's process: cleaning in a thread instead", reason=str(error))
            return None
        order = CleanOrder(job.plan, self._limits(), self._config["log.cleaner.io.max.bytes.per.second"])

        def check() -> None:
            beside.checkpoint()
            if beside.is_cancelled or job.is_void:
                raise CleaningAborted

        def clean(swap_in: SwapIn) -> CleanStats:
            # A process is unusable after an exception, so it is put back only after success.
            self._process = None
            stats = process.clean(order, check, swap_in)
            self._process = process
            return stats

        return clean

    def _over(self, job: CleanJob, outcome: Future[tuple[CleanStats, float]]) -> None:
        from odradek.storage.cleaning.cleaner import CleanerDied, CleaningAborted

        self._cleaning = self._work = None
        job.log.is_being_cleaned = False
        goes_on = not self._is_closed
        try:
            stats, took_ms = outcome.result()
        except CleaningAborted:
            pass
        except CleanerDied as error:
            goes_on = False
            if not self._is_closed:
                broker_log.warn("the cleaner's process ended unexpectedly", **_named(job.log), reason=str(error))
        except Exception as error:  # noqa: BLE001  as Kafka: after any error this log is skipped from now on
            if not job.log.is_closed:
                self._give_up(job.log, error)
        else:
            self._cleaned(job, stats, took_ms)
        if goes_on:
            self.clean_due()
        if not self.is_cleaning and self._process is not None:
            process, self._process = self._process, None
            self._background.run(process.close, lambda _: None, name="log-cleaner")

    def _limits(self) -> CleanerLimits:
        from odradek.storage.cleaning.cleaner import CleanerLimits

        config = self._config
        return CleanerLimits(
            dedupe_buffer_bytes=config["log.cleaner.dedupe.buffer.size"],
            load_factor=config["log.cleaner.io.buffer.load.factor"],
            io_buffer_bytes=max(config["log.cleaner.io.buffer.size"] // 2, 1024),
        )

    def _cleaned(self, job: CleanJob, stats: CleanStats, took_ms: float) -> None:
        self.cleans += 1
        self.last_stats = stats
        self.last_clean_ms = took_ms
        if job.log.is_closed:
            return
        job.log.cleaned_offset = stats.end_offset
        try:
            self._log_manager.checkpoints.write_cleaned_offsets()
        except OSError as error:
            # If the broker crashes now, the log is cleaned once more.
            broker_log.warn("cannot write cleaner offsets", reason=str(error))
        if stats.keyless_records:
            broker_log.warn(
                "records without a key dropped from a compacted log",
                **_named(job.log),
                records=stats.keyless_records,
            )

    def _give_up(self, log: Log, error: Exception) -> None:
        if isinstance(error, OSError):
            # Perhaps it is the directory that has failed.
            log.storage_error(error)
        self.uncleanable[log.topic, log.partition] = log
        broker_log.warn("compaction of a log failed: not trying again before the next start", **_named(log), reason=str(error))


def _named(log: Log) -> dict[str, object]:
    return {"topic": log.topic, "partition": log.partition}


class _Pace:
    """Paces the thread, and aborts the clean. Call it with the number of bytes read and written since the last call."""

    def __init__(self, log: Log, clock: Clock, beside: Beside, bytes_per_second: float) -> None:
        self._log = log
        self._clock = clock
        self._beside = beside
        self._others = OtherThreads()
        self._is_alone = False
        self._looked_ms = self._resumed_ms = clock.monotonic_ms()
        self._throttle = Throttle(bytes_per_second, self._looked_ms)

    def __call__(self, size_bytes: int) -> None:
        from odradek.storage.cleaning.cleaner import CleaningAborted

        self._beside.checkpoint()
        if self._beside.is_cancelled or self._log.is_closed:
            raise CleaningAborted
        now_ms = self._clock.monotonic_ms()
        worked_ms = now_ms - self._resumed_ms
        ahead_ms = self._throttle.ahead_ms(size_bytes, now_ms)
        if worked_ms < _SLICE_MS and ahead_ms < _SLICE_MS:
            return
        if now_ms - self._looked_ms > _LOOK_MS:
            self._is_alone = self._others.used_ms() < _ALONE_SHARE * (now_ms - self._looked_ms)
            self._looked_ms = now_ms
        rest_ms = (_ALONE_REST if self._is_alone else _BUSY_REST) * worked_ms
        self._beside.rest(max(min(rest_ms, _LONGEST_REST_MS), ahead_ms))
        self._resumed_ms = self._clock.monotonic_ms()
