"""The topic that the share group reads: logs on a disk in memory, which all brokers share, and what has been written to them.

A batch is plain or part of a transaction. Some batches are as a compacted log has them, with holes before and within.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from odradek.coordinator.runtime.result import EndTxnMarker
from odradek.protocol.records import Record, build_batch
from odradek.storage.log.log import Log
from odradek.storage.log.log_config import LogConfig
from tests.memory_filesystem import MemoryFileSystem

if TYPE_CHECKING:
    from random import Random

    from odradek.broker.replica.partition import Partition

TOPIC = "t"
TOPIC_ID = UUID(int=7)


class Written:
    """One partition: its log, the offsets of its records, and the transaction of each that is in one."""

    def __init__(self, index: int, segment_bytes: int, now_ms: int) -> None:
        self.log = Log.open(
            MemoryFileSystem(),
            f"/data/{TOPIC}-{index}",
            TOPIC,
            index,
            LogConfig(segment_bytes=segment_bytes),
            clean=True,
            now_ms=now_ms,
            warn=lambda *_, **__: None,
            topic_id=TOPIC_ID,
        )
        self.records: dict[int, int | None] = {}
        # By producer id: True if committed, False if aborted. Open transactions with their next sequence number.
        self.ended: dict[int, bool] = {}
        self.open: dict[int, int] = {}
        self._producers = 0

    def is_visible(self, offset: int, *, is_committed_only: bool) -> bool:
        """Return whether members are to see what is at ``offset``: a record, and of no aborted transaction if that is asked."""
        if offset not in self.records or offset < self.log.log_start_offset:
            return False
        producer = self.records[offset]
        return producer is None or not is_committed_only or self.ended.get(producer, True)

    def is_open(self, offset: int) -> bool:
        """Return whether a record is part of a transaction that has not ended."""
        return self.records.get(offset) in self.open

    def produce(self, leader: Partition, rng: Random, now_ms: int, *, transactional_share: float, hole_share: float) -> None:
        """Append something."""
        count = rng.choice((1, 1, 2, 5, 12))
        if rng.random() < transactional_share:
            self._in_transaction(leader, rng, count, now_ms)
            return
        base = self.log.log_end_offset
        if rng.random() >= hole_share:
            batch = build_batch([Record(timestamp=now_ms, value=b"v") for _ in range(count)])
            info = leader.append(batch, now_ms)
            self.records.update(dict.fromkeys(range(info.first_offset, info.last_offset + 1)))
            return
        base += rng.randint(0, 3)
        offsets = [base, *sorted(rng.sample(range(base + 1, base + count + 4), count))]
        records = [Record(timestamp=now_ms, value=b"v", offset=offset) for offset in offsets]
        self.log.append_as_follower(build_batch(records, base_offset=base), leader_epoch=leader.leader_epoch, now_ms=now_ms)
        self.records.update(dict.fromkeys(offsets))
        leader.flushed()

    def _in_transaction(self, leader: Partition, rng: Random, count: int, now_ms: int) -> None:
        if self.open and rng.random() < 0.5:
            self.end(leader, rng.choice(list(self.open)), is_commit=rng.random() < 0.5, now_ms=now_ms)
            return
        if not self.open or rng.random() < 0.4:
            self._producers += 1
            self.open[self._producers] = 0
        producer = rng.choice(list(self.open))
        records = [Record(timestamp=now_ms, value=b"v") for _ in range(count)]
        batch = build_batch(
            records, producer_id=producer, producer_epoch=0, base_sequence=self.open[producer], transactional=True
        )
        info = leader.append(batch, now_ms, transaction_verified=True)
        self.open[producer] += count
        self.records.update(dict.fromkeys(range(info.first_offset, info.last_offset + 1), producer))

    def end(self, leader: Partition, producer: int, *, is_commit: bool, now_ms: int) -> None:
        """End a transaction."""
        del self.open[producer]
        self.ended[producer] = is_commit
        leader.append_marker(EndTxnMarker(producer, 0, 0, is_commit), now_ms)
