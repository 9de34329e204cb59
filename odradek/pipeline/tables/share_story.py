"""Rows from the records of one share partition (KIP-932), read in log order: deliveries that ended, and its progress.

The share coordinator writes two kinds of records:

    share_snapshot    the whole state; a tombstone deletes it
    share_update      a new start offset, and the batches whose state has changed

A batch has the state and the delivery count of consecutive records. A member acquires records without a word in the log. The
record that follows says how the delivery ended: Available (to be delivered again), Acknowledged, Archiving or Archived. The log
does not tell a release from an acquisition lock that expired. It has the time between two such records, and a member cannot have
had the records any longer.

As the share coordinator does, a story takes the higher delivery count and then the higher state where a batch meets an older one.
A snapshot may bring changes that no update has told.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Self

from odradek.pipeline.schema import SHARE_SNAPSHOT, topic_of_id
from odradek.pipeline.tables.stories import Json, Record, Row

_UNKNOWN = -1
_AVAILABLE, _ACKNOWLEDGED, _ARCHIVING, _ARCHIVED = 0, 2, 3, 4
_STATES = {_AVAILABLE: "Available", _ACKNOWLEDGED: "Acknowledged", _ARCHIVING: "Archiving", _ARCHIVED: "Archived"}
_CHANGES = {_AVAILABLE: "returned", _ACKNOWLEDGED: "accepted", _ARCHIVING: "archiving", _ARCHIVED: "archived"}


class _Run(NamedTuple):
    """Consecutive records that are alike. ``since_us``: when they came to be so; ``first_us``: their first return."""

    first_offset: int
    last_offset: int
    state: int = _AVAILABLE
    delivery_count: int = 0
    since_us: int | None = None
    first_us: int | None = None

    def is_like(self, other: "_Run") -> bool:
        return self[2:] == other[2:]


class _Position(NamedTuple):
    """The share partition without its batches."""

    start_offset: int = _UNKNOWN
    state_epoch: int = 0
    leader_epoch: int = 0
    snapshot_epoch: int = 0
    delivery_complete_count: int = _UNKNOWN


class SharePartitionStory:
    """The share partition of ``group`` at ``place``, a topic id and a partition. ``names`` are the known topics, by id."""

    def __init__(self, group: str, place: tuple[str, int], names: Mapping[str, str]) -> None:
        self.place = place
        self._group, self._names = group, names
        self._position: _Position | None = None
        # In the order of their offsets, without overlaps.
        self._runs: list[_Run] = []
        self._newest: Json = {}

    @classmethod
    def resumed(cls, group: str, names: Mapping[str, str], state: str) -> Self:
        """Return the story with the ``state`` that an earlier story returned."""
        told = json.loads(state)
        topic_id, partition = told["place"]
        story = cls(group, (topic_id, partition), names)
        story._position = _Position(*told["position"])
        story._runs = [_Run(*run) for run in told["runs"]]
        story._newest = told["newest"]
        return story

    def state(self) -> str | None:
        """Return everything that a later pass needs; None if there is no such share partition."""
        if self._position is None:
            return None
        return json.dumps({"place": self.place, "position": self._position, "runs": self._runs, "newest": self._newest})

    def take(self, record: Record) -> list[Row]:
        """Apply the next record, and return its rows."""
        before, value = self._position, record.fields
        self._newest = record.coordinates()
        if record.is_tombstone:
            self._position, self._runs = None, []
            return [] if before is None else [self._row("share_progress", change="deleted", **self._newest)]
        is_snapshot = record.kind == SHARE_SNAPSHOT
        now = self._position = _merged(before, value, is_snapshot=is_snapshot)
        change = _change(before, now)
        if change == "reset":
            self._runs = []
        batches = _batches(value)
        if before is None:
            # A snapshot that the log begins with has changes of which the time is not known.
            self._runs = [_Run(*batch) for batch in batches]
            deliveries: Iterable[Row] = ()
        else:
            ended = [run for batch in batches for run in self._end(_Run(*batch, since_us=record.at_us))]
            deliveries = [self._delivery(*pair) for pair in _joined(ended)]
        if is_snapshot:
            self._keep_only(batches)
        self._forget_before(now.start_offset)
        progress = () if change is None else (self._progress(change, before, now),)
        return [*deliveries, *progress]

    def now(self) -> Row:
        """Return the row of ``share_partitions_now``."""
        batches = [
            {
                "first_offset": run.first_offset,
                "last_offset": run.last_offset,
                "state": _STATES.get(run.state),
                "delivery_count": run.delivery_count,
                "since": run.since_us,
                "first_returned_at": run.first_us,
            }
            for run in self._runs
        ]
        return self._row("share_partitions_now", batches=batches, **_told(self._position or _Position()), **self._newest)

    def _end(self, new: _Run) -> Iterator[tuple[_Run, _Run]]:
        """Put ``new`` over the runs. Yield the parts that have changed, before and after."""
        runs = self._runs
        low = high = bisect_left(runs, new.first_offset, key=lambda run: run.last_offset)
        while high < len(runs) and runs[high].first_offset <= new.last_offset:
            high += 1
        put: list[_Run] = []
        for old in _covered(runs[low:high], new.first_offset, new.last_offset):
            if not (new.first_offset <= old.first_offset and old.last_offset <= new.last_offset) or not _is_later(new, old):
                put.append(old)
                continue
            first_us = new.since_us if old.first_us is None and new.state == _AVAILABLE else old.first_us
            now = new._replace(first_offset=old.first_offset, last_offset=old.last_offset, first_us=first_us)
            put.append(now)
            yield old, now
        # Records without a state are no run.
        runs[low:high] = _merged_runs(run for run in put if run.since_us is not None or run.delivery_count or run.state)

    def _keep_only(self, batches: Iterable[tuple[int, int, int, int]]) -> None:
        """Drop what a snapshot does not have."""
        runs, low = self._runs, 0
        kept: list[_Run] = []
        for first, last, _, _ in batches:
            while low < len(runs) and runs[low].last_offset < first:
                low += 1
            high = low
            while high < len(runs) and runs[high].first_offset <= last:
                run, high = runs[high], high + 1
                kept.append(run._replace(first_offset=max(first, run.first_offset), last_offset=min(last, run.last_offset)))
        self._runs = kept

    def _forget_before(self, start_offset: int) -> None:
        runs = self._runs
        low = bisect_left(runs, start_offset, key=lambda run: run.last_offset)
        del runs[:low]
        if runs and runs[0].first_offset < start_offset:
            runs[0] = runs[0]._replace(first_offset=start_offset)

    def _delivery(self, old: _Run, new: _Run) -> Row:
        was_returned = old.state == _AVAILABLE and old.since_us is not None
        return self._row(
            "share_deliveries",
            first_offset=new.first_offset,
            last_offset=new.last_offset,
            records=new.last_offset - new.first_offset + 1,
            change=_CHANGES.get(new.state),
            state=_STATES.get(new.state),
            delivery_count=new.delivery_count,
            previous_state=_STATES.get(old.state),
            previous_delivery_count=old.delivery_count,
            held_ms=max(0, (new.since_us or 0) - (old.since_us or 0)) // 1000 if was_returned else None,
            first_returned_at=new.first_us,
            **self._newest,
        )

    def _progress(self, change: str, before: _Position | None, now: _Position) -> Row:
        told = _told(now)
        previous = None if before is None else _known(before.start_offset)
        start = told["start_offset"]
        delta = None if start is None or previous is None else start - previous
        return self._row("share_progress", change=change, previous_offset=previous, delta=delta, **told, **self._newest)

    def _row(self, table: str, **columns: object) -> Row:
        topic_id, partition = self.place
        topic = self._names.get(topic_id) or topic_of_id(topic_id)
        return Row(table, {"group": self._group, "topic": topic, "partition": partition, **columns})


def _merged(before: _Position | None, value: Json, *, is_snapshot: bool) -> _Position:
    """Return the position after a record. An update may leave the start offset and the leader epoch alone."""
    complete = value.get("delivery_complete_count", _UNKNOWN)
    start_offset, leader_epoch = value["start_offset"], value["leader_epoch"]
    if is_snapshot:
        return _Position(start_offset, value["state_epoch"], leader_epoch, value["snapshot_epoch"], complete)
    known = before or _Position()
    return known._replace(
        start_offset=known.start_offset if start_offset == _UNKNOWN else start_offset,
        leader_epoch=known.leader_epoch if leader_epoch == _UNKNOWN else leader_epoch,
        snapshot_epoch=value["snapshot_epoch"],
        delivery_complete_count=complete,
    )


def _change(before: _Position | None, now: _Position) -> str | None:
    """Return the ``change`` of ``share_progress``; None if there is none."""
    if before is None:
        return "first"
    if now.state_epoch != before.state_epoch or now.start_offset < before.start_offset:
        return "reset"
    if now.start_offset != before.start_offset:
        return "progress"
    return None if now.leader_epoch == before.leader_epoch else "leader"


def _batches(value: Json) -> list[tuple[int, int, int, int]]:
    """Return (first offset, last offset, state, delivery count) of a record's batches, in order."""
    batches = value["state_batches"]
    return sorted((each["first_offset"], each["last_offset"], each["delivery_state"], each["delivery_count"]) for each in batches)


def _covered(runs: Iterable[_Run], first: int, last: int) -> Iterator[_Run]:
    """Yield the runs, cut at both offsets, and a run without a state for each gap between them."""
    at = first
    for run in runs:
        if run.first_offset < first:
            yield run._replace(last_offset=first - 1)
            run = run._replace(first_offset=first)  # noqa: PLW2901  the part of it from there on
        if at < run.first_offset:
            yield _Run(at, run.first_offset - 1)
        yield run._replace(last_offset=min(run.last_offset, last))
        if run.last_offset > last:
            yield run._replace(first_offset=last + 1)
        at = run.last_offset + 1
    if at <= last:
        yield _Run(at, last)


def _is_later(new: _Run, old: _Run) -> bool:
    return (new.delivery_count, new.state) > (old.delivery_count, old.state)


def _merged_runs(runs: Iterable[_Run]) -> list[_Run]:
    """Return the runs with neighbours that are alike made one."""
    merged: list[_Run] = []
    for run in runs:
        if merged and merged[-1].last_offset + 1 == run.first_offset and merged[-1].is_like(run):
            merged[-1] = merged[-1]._replace(last_offset=run.last_offset)
        else:
            merged.append(run)
    return merged


def _joined(pairs: Iterable[tuple[_Run, _Run]]) -> list[tuple[_Run, _Run]]:
    """Return the pairs with neighbours that were alike, and are so still, made one."""
    joined: list[tuple[_Run, _Run]] = []
    for old, new in pairs:
        if joined and joined[-1][1].last_offset + 1 == new.first_offset:
            before, after = joined[-1]
            if before.is_like(old) and after.is_like(new):
                joined[-1] = before._replace(last_offset=old.last_offset), after._replace(last_offset=new.last_offset)
                continue
        joined.append((old, new))
    return joined


def _known(number: int) -> int | None:
    return None if number == _UNKNOWN else number


def _told(position: _Position) -> Json:
    return position._asdict() | {
        "start_offset": _known(position.start_offset),
        "delivery_complete_count": _known(position.delivery_complete_count),
    }
