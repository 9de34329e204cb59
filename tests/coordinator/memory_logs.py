"""The tests' one double of coordinator logs: in memory, failing on demand, the loop's callbacks run when told.

For tests of what coordinators decide, which need no broker. The logs of a whole broker are those of ``odradek.testing``.
"""

from bisect import bisect_left
from collections import deque

from odradek.protocol.control_records import build_end_txn_marker
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.plain_batches import build_batch, read_batch
from odradek.protocol.record_batch import iter_batches, read_header, stamped_head


class MemoryLog:
    """One partition. ``batches`` are as a disk would have them; ``held_back`` keeps the high watermark where it is."""

    def __init__(self, max_batch_bytes):
        self.batches = []
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.max_batch_bytes = max_batch_bytes
        self.held_back = False
        self.on_high_watermark = None
        # Errors for the appends to come; a pair (error, True) fails after the batch has been written.
        self.failures = deque()
        # The code of the error of every append, for as long as it is set.
        self.failure = None

    def append(self, records, now_ms, producer=None):
        return self._take(build_batch(records, now_ms, producer=producer))

    def append_marker(self, marker, now_ms):
        producer_id, epoch, coordinator_epoch, is_commit, _ = marker
        return self._take(build_end_txn_marker(producer_id, epoch, coordinator_epoch, is_commit, now_ms))

    def left_open(self, producer_id, oldest_epoch):
        """None: this log knows no producers."""

    def _take(self, batch):
        if self.failure is not None:
            raise KafkaError(self.failure)
        error, is_written = None, True
        if self.failures:
            failure = self.failures.popleft()
            error, is_written = failure if isinstance(failure, tuple) else (failure, False)
        if is_written:
            self.append_batch(batch)
        if error is not None:
            raise error
        if not self.held_back:
            self.release()
        return self.log_end_offset

    def append_batch(self, batch):
        """What somebody has built; its head is stamped as a log does."""
        assert len(batch) <= self.max_batch_bytes
        header = read_header(batch)
        head = stamped_head(header.batch_length, self.log_end_offset, 0)
        self.batches.append(head + batch[len(head) :])
        self.log_end_offset += header.last_offset_delta + 1

    def release(self, offset=None):
        """Move the high watermark to ``offset``, or to the end."""
        self.high_watermark = self.log_end_offset if offset is None else offset
        if self.on_high_watermark is not None:
            self.on_high_watermark()

    def hold_back_no_more(self):
        """Let the high watermark move again, at once to the end."""
        self.held_back = False
        self.release()

    def read(self, offset, max_bytes):
        chunks, left = [], max_bytes
        for batch in self.batches[self._index(offset) :]:
            if chunks and left <= 0:
                break
            chunks.append(batch[:left] if chunks else batch)
            left -= len(batch)
        return b"".join(chunks)

    def _index(self, offset):
        return bisect_left(self.batches, offset, key=lambda batch: read_header(batch).last_offset)

    def records(self):
        """(offset, key, value) of all there is."""
        return [record for batch in self.batches for _ in iter_batches(batch) for record in read_batch(batch)]


class MemoryLogs:
    """``run()`` runs what was to be called soon, and what that adds, until there is nothing left; ``turn()`` one turn of it."""

    def __init__(self, partition_count=1, max_batch_bytes=1_048_588):
        self.logs = [MemoryLog(max_batch_bytes) for _ in range(partition_count)]
        self.not_here = set()
        self.creation_error = None
        self._callbacks = deque()

    @property
    def partition_count(self):
        if self.creation_error is not None:
            raise self.creation_error
        return len(self.logs)

    def open(self, partition):
        if partition in self.not_here:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "not here")
        return self.logs[partition]

    def on_high_watermark(self, partition, callback):
        self.logs[partition].on_high_watermark = callback

    def call_soon(self, callback):
        self._callbacks.append(callback)

    def drop_callbacks(self):
        """The process that was to be called back is gone."""
        self._callbacks.clear()

    def turn(self):
        callbacks, self._callbacks = self._callbacks, deque()
        for callback in callbacks:
            callback()
        return len(callbacks)

    def run(self):
        turns = 0
        while self.turn():
            turns += 1
            assert turns < 100_000
        return turns
