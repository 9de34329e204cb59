"""The records of share partitions as a test writes them down: (kind, is it a tombstone, fields), as ingest decodes them."""

from typing import Any

from tests.pipeline.consumer_records import ORDERS_ID, ConsumerRecord

Batch = tuple[int, int, int, int]
AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = 0, 2, 3, 4


def snapshot(
    *batches: Batch, start: int = 0, state_epoch: int = 1, leader_epoch: int = 0, complete: int | None = None, partition: int = 0
) -> ConsumerRecord:
    """A share partition's whole state: batches are (first offset, last offset, state, delivery count)."""
    epochs = {"snapshot_epoch": 0, "state_epoch": state_epoch, "leader_epoch": leader_epoch}
    times = {"create_timestamp": 0, "write_timestamp": 0}
    return _record("share_snapshot", {**epochs, **times, **_told(batches, start, complete)}, partition)


def update(
    *batches: Batch, start: int = -1, leader_epoch: int = -1, complete: int | None = None, partition: int = 0
) -> ConsumerRecord:
    """A change of it."""
    epochs = {"snapshot_epoch": 0, "leader_epoch": leader_epoch}
    return _record("share_update", {**epochs, **_told(batches, start, complete)}, partition)


def deleted(partition: int = 0) -> ConsumerRecord:
    """The end of it."""
    return _record("share_snapshot", None, partition)


def _told(batches: tuple[Batch, ...], start: int, complete: int | None) -> dict[str, Any]:
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    told: dict[str, Any] = {"start_offset": start, "state_batches": [dict(zip(names, each, strict=True)) for each in batches]}
    return told if complete is None else told | {"delivery_complete_count": complete}


def _record(kind: str, value: dict[str, Any] | None, partition: int) -> ConsumerRecord:
    return kind, value is None, {"group_id": "g", "topic_id": ORDERS_ID, "partition": partition, **(value or {})}
