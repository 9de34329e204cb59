"""Merges state batches: the stored ones and an update's, into batches that do not overlap.

Where two batches overlap, the later delivery wins: the higher delivery count, then the higher delivery state. Neighbours in the
same state become one batch. A single batch is not touched.

Source: ``PersisterStateBatchCombiner`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from odradek.coordinator.share.state import UNINITIALIZED_START_OFFSET, StateBatch

if TYPE_CHECKING:
    from collections.abc import Iterable


def combine_batches(stored: Iterable[StateBatch], update: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """Return the batches of both from ``start_offset`` on, sorted, without overlaps. -1 keeps everything."""
    kept = [*stored, *update]
    if start_offset != UNINITIALIZED_START_OFFSET:
        kept = [
            batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
            for batch in kept
            if batch.last_offset >= start_offset
        ]
    return tuple(kept) if len(kept) <= 1 else tuple(_merge(kept))


def _merge(batches: list[StateBatch]) -> list[StateBatch]:
    """Sweep over the offsets at which a batch begins or has ended; between two of them, the winner is the same."""
    events: list[tuple[int, int, tuple[int, int]]] = []
    for first, last, state, count in batches:
        delivery = (count, state)
        events += [(first, 1, delivery), (last + 1, -1, delivery)]
    events.sort()
    merged: list[StateBatch] = []
    # The deliveries of the batches that cover the offset, and how many batches have each.
    covering: Counter[tuple[int, int]] = Counter()
    begun = -1
    for offset, change, delivery in events:
        if covering and offset > begun:
            count, state = max(covering)
            _append(merged, StateBatch(begun, offset - 1, state, count))
        covering[delivery] += change
        if not covering[delivery]:
            del covering[delivery]
        begun = offset
    return merged


def _append(merged: list[StateBatch], batch: StateBatch) -> None:
    """Append ``batch``, or extend the last one if both are alike."""
    if merged and merged[-1].last_offset + 1 == batch.first_offset and merged[-1][2:] == batch[2:]:
        merged[-1] = merged[-1]._replace(last_offset=batch.last_offset)
    else:
        merged.append(batch)
