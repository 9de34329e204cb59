"""The metadata log as the leader of a quorum has it, for brokers that follow it (KIP-595).

An epoch begins with each start, by a control batch that names the leader. A follower whose log is another one is told where the
two diverge, and one that lacks what snapshots contain is sent to a snapshot (KIP-630).
"""

from typing import Final, NamedTuple

from odradek.broker.metadata.metadata_log import MetadataLog
from odradek.broker.metadata.snapshot_files import SnapshotId
from odradek.protocol.quorum_records import Voter, epoch_start_batch
from odradek.protocol.record_batch import iter_batches

_NOTHING: Final = (0, 0)


class EpochEnd(NamedTuple):
    """The largest epoch not above one that was asked for, and where it ends."""

    epoch: int
    end_offset: int


class QuorumLog(MetadataLog):
    """The log of the only voter: what is synced is committed. Loop thread only."""

    def begin_epoch(self, voter: Voter, *, seen_epoch: int, is_dynamic: bool, now_ms: int) -> None:
        """Begin an epoch above all there were, ``seen_epoch`` included; the log names the voter if the quorum ``is_dynamic``.

        KafkaError: KAFKA_STORAGE_ERROR.
        """
        self.voter = voter
        newest = self.snapshots.ids[-1].epoch if self.snapshots.ids else 0
        epoch = max(self._log.leader_epochs.latest, newest, seen_epoch, 0) + 1
        batch = epoch_start_batch(self.end_offset, now_ms, epoch, voter, is_dynamic=is_dynamic)
        # Synced, as every append to this log is.
        self._log.append_as_follower(batch, leader_epoch=epoch, now_ms=now_ms)
        self.last_append_ms = now_ms

    @property
    def high_watermark(self) -> int:
        """Up to where records are committed."""
        return self.synced_offset

    def check(self, offset: int, epoch: int) -> EpochEnd | SnapshotId | None:
        """What a follower is to do whose log ends at ``offset``, behind a record of ``epoch``: None if it may fetch there.

        Else its log diverges from this one behind the end of an epoch, or it has to begin anew at a snapshot.
        """
        ids = self.snapshots.ids
        if ids and self._lacks_a_snapshot(offset, epoch):
            return ids[-1]
        if (offset, epoch) == _NOTHING:
            return None
        known_epoch, end_offset = self._log.end_offset_for_epoch(epoch)
        if known_epoch < 0:
            known_epoch, end_offset = self.leader_epoch, self.end_offset
        return None if known_epoch == epoch and offset <= end_offset else EpochEnd(known_epoch, end_offset)

    def _lacks_a_snapshot(self, offset: int, epoch: int) -> bool:
        """A follower that has nothing yet is sent to a snapshot, too, which is shorter."""
        start_offset, oldest = self.start_offset, self.snapshots.ids[0]
        if offset == 0 or offset < start_offset:
            return True
        if start_offset == 0:
            return False
        return epoch < oldest.epoch or (offset == start_offset and epoch != oldest.epoch)

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Committed batches from ``offset`` on, whole ones, one at least if there is any. KafkaError, OSError."""
        found = self._log.read(offset, max_bytes, upper_offset=self.high_watermark, min_one_batch=True)
        if found is None:
            return b""
        data = found.read()
        end = 0
        for position, header in iter_batches(data):
            end = position + header.size_bytes
        return data[:end]
