"""Merges state batches: the stored ones and an update's, into batches that do not overlap. Also whole snapshots and updates.

Where two batches overlap, the later delivery wins: the higher delivery count, then the higher delivery state. Neighbours in the
same state become one batch. A single batch is only cut at the start offset.

A share partition may have thousands of stored batches, and each acknowledgement brings an update of a few. So only the stored
batches around the update are merged. Kafka merges all; the result is the same.

Source: ``PersisterStateBatchCombiner`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from odradek.coordinator.share.state import UNINITIALIZED_START_OFFSET, StateBatch
from odradek.protocol.coordinator_records.share_states import ShareSnapshotValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.protocol.coordinator_records.share_states import ShareUpdateValue

# An update that leaves the leader epoch alone.
NO_EPOCH: Final = -1

# Fields of StateBatch.
_FIRST_OFFSET: Final = itemgetter(0)
_LAST_OFFSET: Final = itemgetter(1)


def combine_batches(stored: Sequence[StateBatch], update: Sequence[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """Return the batches of both from ``start_offset`` on, sorted, without overlaps. -1 keeps everything.

    ``stored`` is sorted and without overlaps, as returned by this function.
    """
    if start_offset != UNINITIALIZED_START_OFFSET:
        stored = stored[bisect_left(stored, start_offset, key=_LAST_OFFSET) :]
        if stored and stored[0].first_offset < start_offset:
            stored = (_cut(stored[0], start_offset), *stored[1:])
        update = [_cut(batch, start_offset) for batch in update if batch.last_offset >= start_offset]
    if not update:
        return tuple(stored)
    if not stored and len(update) == 1:
        return tuple(update)
    # Neighbours that only touch the update are merged as well.
    low = bisect_left(stored, min(batch.first_offset for batch in update) - 1, key=_LAST_OFFSET)
    high = bisect_right(stored, max(batch.last_offset for batch in update) + 1, key=_FIRST_OFFSET)
    return (*stored[:low], *_merge([*stored[low:high], *update]), *stored[high:])


def is_combined(batches: Sequence[StateBatch]) -> bool:
    """Return whether ``batches`` are sorted and without overlaps."""
    return all(earlier.last_offset < later.first_offset for earlier, later in pairwise(batches))


def combined(snapshot: ShareSnapshotValue) -> ShareSnapshotValue:
    """Return a snapshot record whose batches are sorted and without overlaps."""
    if is_combined(snapshot.state_batches):
        return snapshot
    return snapshot._replace(state_batches=combine_batches((), snapshot.state_batches, snapshot.start_offset))


def updated(stored: ShareSnapshotValue | None, update: ShareUpdateValue) -> ShareSnapshotValue:
    """Return a combined snapshot with an update merged into it. An update without a snapshot before it stands for one."""
    snapshot_epoch, leader_epoch, start_offset, batches, delivery_complete_count = update
    if stored is None:
        whole = combine_batches((), batches, start_offset)
        return ShareSnapshotValue(snapshot_epoch, 0, leader_epoch, start_offset, 0, 0, whole, delivery_complete_count)
    if start_offset == UNINITIALIZED_START_OFFSET:
        start_offset = stored.start_offset
    return stored._replace(
        leader_epoch=stored.leader_epoch if leader_epoch == NO_EPOCH else leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=delivery_complete_count,
        state_batches=combine_batches(stored.state_batches, batches, start_offset),
    )


def _cut(batch: StateBatch, start_offset: int) -> StateBatch:
    return batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)


def _merge(batches: list[StateBatch]) -> list[StateBatch]:
    """Sweep over the offsets at which a batch begins or has ended; between two of them, the winner is the same."""
    merged: list[StateBatch] = []
    batches.sort()
    if is_combined(batches):
        for batch in batches:
            append_batch(merged, batch)
        return merged
    events: list[tuple[int, int, tuple[int, int]]] = []
    for first, last, state, count in batches:
        delivery = (count, state)
        events += [(first, 1, delivery), (last + 1, -1, delivery)]
    events.sort()
    # The deliveries of the batches that cover the offset, and how many batches have each.
    covering: Counter[tuple[int, int]] = Counter()
    begun = -1
    for offset, change, delivery in events:
        if covering and offset > begun:
            count, state = max(covering)
            append_batch(merged, StateBatch(begun, offset - 1, state, count))
        covering[delivery] += change
        if not covering[delivery]:
            del covering[delivery]
        begun = offset
    return merged


def append_batch(merged: list[StateBatch], batch: StateBatch) -> None:
    """Append ``batch``, or extend the last one if both are alike."""
    if merged and merged[-1].last_offset + 1 == batch.first_offset and merged[-1][2:] == batch[2:]:
        merged[-1] = merged[-1]._replace(last_offset=batch.last_offset)
    else:
        merged.append(batch)
