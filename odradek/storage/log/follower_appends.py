"""Appends of batches that a follower has fetched from its leader.

The batches are written unchanged, with the leader's offsets, leader epochs and timestamps. The leader has checked sizes and
sequence numbers; they are not checked again. Leader epochs, producers, aborted transactions and indexes are updated from the
batches. Segments roll where the leader's do.

A fetch may cut its last batch, which is then ignored. It may also end with batches of a later leader, if the leader lost its role
while answering. Only batches up to the fetch's leader epoch are appended. The follower fetches the rest again.

A compacted leader has gaps between offsets, and so has its follower. Messages of formats v0 and v1 have no leader epoch: as in
Kafka, the follower drops the epochs before them.

Left out: gaps of 2^31 offsets and more, which relative offsets in the indexes cannot express.
"""

from typing import Final

from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.record_batch import MAGIC, BatchHeader, Buffer, ensure_intact, iter_batches
from odradek.storage.errors import OffsetsOutOfOrder, UnexpectedAppendOffset
from odradek.storage.log.control_batches import ensure_readable, record_markers
from odradek.storage.log.log_writer import AppendInfo, LogWork
from odradek.storage.log.segment import MAX_RELATIVE_OFFSET

_NO_TIMESTAMP: Final = -1


class FollowerAppends(LogWork):
    """A follower's appends to one log. Loop thread only."""

    __slots__ = ()

    def append(self, batches: Buffer, leader_epoch: int, now_ms: int) -> AppendInfo | None:
        """Append batches; see ``Log.append_as_follower``."""
        self._flush_state.ensure_synced()
        found = self._checked(batches, leader_epoch)
        if not found:
            return None
        # Load the producers before anything is written: an unloaded log restores only the producers below its former end.
        self._producers.load()
        whole = memoryview(batches)
        for position, header in found:
            self._append_one(header, whole[position : position + header.size_bytes], now_ms)
        if self._flush_state.is_flush_due:
            self._flush_state.flush_soon(now_ms)
        first_offset, last_offset = found[0][1].base_offset, found[-1][1].last_offset
        return AppendInfo(first_offset, last_offset, _NO_TIMESTAMP, self._local.log_start_offset, False)

    def _checked(self, batches: Buffer, leader_epoch: int) -> list[tuple[int, BatchHeader]]:
        """Return (position, header) of each batch to append, after checking all of them."""
        found: list[tuple[int, BatchHeader]] = []
        next_offset = self._local.log_end_offset
        latest_epoch = self._local.leader_epochs.latest
        try:
            for position, header in iter_batches(batches):
                if header.partition_leader_epoch > leader_epoch:
                    break
                ensure_intact(header, batches, position)
                if header.last_offset_delta < 0 or 0 <= header.partition_leader_epoch < latest_epoch:
                    raise KafkaError(
                        ErrorCode.CORRUPT_MESSAGE,
                        f"offset {header.base_offset}: leader epoch {header.partition_leader_epoch} after {latest_epoch},"
                        f" last offset delta {header.last_offset_delta}",
                    )
                if header.is_control:
                    ensure_readable(memoryview(batches)[position : position + header.size_bytes])
                self._ensure_order(header, next_offset, is_first=not found)
                found.append((position, header))
                next_offset = header.next_offset
                latest_epoch = max(latest_epoch, header.partition_leader_epoch)
        except MalformedMessage as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, error.reason) from error
        return found

    def _ensure_order(self, header: BatchHeader, next_offset: int, *, is_first: bool) -> None:
        """Raise UnexpectedAppendOffset or OffsetsOutOfOrder unless ``header`` may follow ``next_offset - 1``."""
        if next_offset <= header.base_offset and header.last_offset - next_offset <= MAX_RELATIVE_OFFSET:
            return
        if is_first:
            raise UnexpectedAppendOffset(header.base_offset, header.last_offset, next_offset)
        raise OffsetsOutOfOrder(f"a batch begins at offset {header.base_offset}, not at {next_offset}")

    def _append_one(self, header: BatchHeader, batch: memoryview, now_ms: int) -> None:
        epoch = header.partition_leader_epoch
        epochs = self._local.leader_epochs
        try:
            if header.magic < MAGIC:
                # After this batch, the end of the former epochs is unknown.
                epochs.truncate_from_end(0)
            elif epoch > epochs.latest:
                # After a gap, an epoch begins with its first batch, where recovery will find it.
                epochs.assign(epoch, header.base_offset)
        except OSError as error:
            raise self._errors.report(error) from error
        self._writer.write((batch,), len(batch), header.last_offset, header.max_timestamp, epochs.latest, now_ms)
        if header.producer_id < 0:
            return
        producers = self._producers.load()
        if header.is_control:
            for aborted in record_markers(header, batch, producers):
                self._local.segments.active.append_aborted(aborted)
        else:
            producers.record(header, header.base_offset, header.max_timestamp)
