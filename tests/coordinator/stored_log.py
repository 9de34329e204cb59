"""A coordinator's log on a disk in memory, as a broker has it: with segments, producers and compaction."""

from odradek.coordinator.runtime.result import EndTxnMarker
from odradek.protocol.plain_batches import build_batch
from tests.memory_filesystem import MemoryFileSystem
from tests.storage.cleaner.support import clean_up, compacted
from tests.storage.support import open_log

CONFIG = compacted(segment_bytes=20_000, index_interval_bytes=4096, delete_retention_ms=1000)


class StoredLog:
    """A partition of a coordinator's topic, on a disk in memory."""

    def __init__(self):
        self.files = MemoryFileSystem()
        self.log = open_log(self.files, config=CONFIG)
        self.batches = []
        self.max_batch_bytes = 10_000
        self.on_high_watermark = None
        self.cleaned = None

    @property
    def log_start_offset(self):
        return self.log.log_start_offset

    @property
    def log_end_offset(self):
        return self.log.log_end_offset

    high_watermark = log_end_offset

    def append(self, records, now_ms, producer=None):
        self.batches.append(build_batch(records, now_ms, producer=producer))
        self.log.coordinator_appends.append_internal(records, leader_epoch=0, now_ms=now_ms, producer=producer)
        return self._appended()

    def append_marker(self, marker, now_ms):
        *identity, commit, version = marker
        self.log.coordinator_appends.append_marker(*identity, commit, leader_epoch=0, now_ms=now_ms, transaction_version=version)
        return self._appended()

    def left_open(self, producer_id, oldest_epoch):
        producer = self.log.producers.left_open(producer_id, oldest_epoch)
        return producer and EndTxnMarker(producer_id, producer.epoch, producer.coordinator_epoch, False)

    def _appended(self):
        if self.on_high_watermark is not None:
            self.on_high_watermark()
        return self.log_end_offset

    def read(self, offset, max_bytes):
        found = self.log.read(offset, max_bytes, upper_offset=self.log_end_offset, min_one_batch=True)
        return b"" if found is None else found.read()

    def compact(self, now_ms):
        """All of it, as often as it takes for tombstones and markers to go that may go at ``now_ms``."""
        self.log.roll(now_ms)
        stats = clean_up(self.log, self.cleaned, now_ms=now_ms)
        self.cleaned = self.cleaned if stats is None else stats.end_offset

    def reopen(self):
        """As a broker that was killed finds it."""
        self.log = open_log(self.files, config=CONFIG)
