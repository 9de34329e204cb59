"""One log's producers: restored from snapshot and log when first needed, and written to snapshots.

A cleanly stopped log has a snapshot at its end. Most opened logs get no produce requests, and then the snapshot is not read.
"""

from odradek.storage.errors import DiskErrors
from odradek.storage.log.local_log import LocalLog, LogSettings
from odradek.storage.log.producer_restore import restore
from odradek.storage.log.producer_state import ProducerStates
from odradek.storage.recovery.log_loader import LoadedLog


class LogProducers:
    """The producers of one log, ``loaded`` on first use, and their ``snapshots``. Loop thread only."""

    __slots__ = ("_errors", "_local", "_opened_ms", "_restore_offset", "_settings", "loaded", "snapshots")

    def __init__(self, local: LocalLog, settings: LogSettings, errors: DiskErrors, loaded: LoadedLog, now_ms: int) -> None:
        self._local = local
        self._settings = settings
        self._errors = errors
        self._opened_ms = now_ms
        # While the producers are not loaded, no producer's batch lies after this offset: its append would have loaded them.
        self._restore_offset = loaded.log_end_offset
        self.loaded: ProducerStates | None = loaded.producers
        self.snapshots = loaded.snapshots

    def load(self) -> ProducerStates:
        """Return the producers, loaded from their snapshot if needed. KafkaError: KAFKA_STORAGE_ERROR."""
        if self.loaded is None:
            local = self._local
            end_offset = self._restore_offset
            expiration_ms = self._settings.config.producer_id_expiration_ms
            try:
                found = restore(
                    list(local.segments),
                    self.snapshots,
                    local.log_start_offset,
                    end_offset,
                    end_offset,
                    expired_before_ms=self._opened_ms - expiration_ms,
                    is_compacted=self._settings.config.is_compacted,
                )
            except OSError as error:
                raise self._errors.report(error) from error
            found.expire(self._opened_ms, expiration_ms)
            self.loaded = found
        return self.loaded

    def reset(self) -> None:
        """Drop the loaded producers after a truncation. The next use loads them again from snapshot and log."""
        self.loaded = None
        self._restore_offset = self._local.log_end_offset

    def take_snapshot(self) -> None:
        """Write the producers as of the log end offset, unless that snapshot exists. Raises KafkaError, OSError."""
        local = self._local
        offset = local.log_end_offset
        # An empty log may have had producers.
        has_any = offset > local.log_start_offset or (self.loaded is not None and self.loaded.by_id)
        if has_any and offset not in self.snapshots.offsets:
            self.snapshots.take(self.load(), offset)

    def expire(self, now_ms: int) -> int:
        """Drop idle producers (``producer.id.expiration.ms``). Return their number."""
        if self.loaded is None:
            return 0
        return self.loaded.expire(now_ms, self._settings.config.producer_id_expiration_ms)
