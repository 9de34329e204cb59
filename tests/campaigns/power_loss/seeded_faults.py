"""Faults that are put into the broker, or between it and its disk, and that the campaign has to find.

Each is a mistake that a change of the code might bring: a sync left out, an answer before its wait, a mark before its sync. The
workload runs with the fault; the states of the disk are then examined without it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.broker.replica.delayed_produce import GroupCommit
from odradek.storage.directories.checkpoints import RECOVERY_POINT_FILE
from odradek.storage.directories.upkeep import LogFlusher, OffsetCheckpoints
from odradek.storage.log.flush_state import FlushState
from odradek.storage.log.log import Log
from odradek.storage.log.log_writer import CoordinatorAppends
from odradek.storage.log.segment import Segment
from odradek.timing.background import outcome_of
from tests.campaigns.planted import Change, around, in_place
from tests.campaigns.power_loss import overlapping, workload
from tests.campaigns.power_loss.disk import RecordingDisk, RecordingFile
from tests.campaigns.power_loss.explore import Exploration
from tests.campaigns.power_loss.node import TWO_DIRECTORIES
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Sequence

    from tests.campaigns.power_loss.explore import Finding
    from tests.campaigns.power_loss.run import Run

ROUNDS = 3


class SeededFault(NamedTuple):
    """``changes`` are in effect while the workload runs with this ``log.flush.interval.messages``.

    ``seed`` mostly finds it. ``steps`` are a workload made for it, which takes the place of one drawn by the seed.
    ``is_at_start``: it is in effect during a start that follows instead.
    """

    name: str
    flush_messages: int | None
    changes: tuple[Change, ...]
    seed: int = 0
    steps: Sequence[Callable[[Run], None]] = ()
    is_at_start: bool = False

    def put_in(self) -> AbstractContextManager[None]:
        """Within, the fault is there."""
        return in_place(*self.changes)


def _nothing(*_: Any) -> None:
    """Takes the place of what is left out."""


def _unsynced(is_left_out: Callable[[str], bool]) -> tuple[Change, ...]:
    """Files and directories whose syncs are left out, by their paths."""
    return (
        around(RecordingFile, "sync", lambda sync, file: None if is_left_out(file.path) else sync(file)),
        around(RecordingDisk, "sync_dir", lambda sync_dir, disk, path: None if is_left_out(path) else sync_dir(disk, path)),
    )


def _is_log(path: str) -> bool:
    return path.endswith(".log") and "-future" not in path and "__cluster_metadata" not in path


def _is_log_directory(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.rpartition("-")[2].isdecimal() and "__cluster_metadata" not in name


def _marked_early(unsynced_indexes: Any, segment: Segment) -> Any:
    found = unsynced_indexes(segment)
    for each in found:
        each.synced()
    return found


class _Early:
    """Delivers the outcome first, and does the work then."""

    def __init__(self, background: Any) -> None:
        self._background = background

    def run(self, work: Callable[[], Any], then: Callable[[Any], object], *, name: str) -> None:
        then(outcome_of(lambda: None))
        self._background.run(work, lambda outcome: None, name=name)


def _answered_early(begin: Any, commit: Any, log: Log) -> None:
    background = commit._background
    commit._background = _Early(background)
    begin(commit, log)
    commit._background = background


def _counted_to_the_end(flushed: Any, state: FlushState, task: Any, now_ms: int) -> None:
    flushed(state, task._replace(offset=max(task.offset, state._local.log_end_offset)), now_ms)


def _ahead(write: Any, checkpoints: OffsetCheckpoints, name: str, offset_of: Any, *others: Any) -> None:
    write(checkpoints, name, (lambda log: log.log_end_offset) if name == RECOVERY_POINT_FILE else offset_of, *others)


def _closed_without_a_flush(close: Any, log: Log, *, clean: bool, now_ms: int) -> None:
    if clean:
        log.flush_state.recovery_point = log.log_end_offset
    close(log, clean=clean, now_ms=now_ms)


def _decision_not_flushed(request: Any, commit: GroupCommit, log: Log) -> None:
    if log.topic == "__transaction_state":
        log.flush_state.awaits_flush = False
    else:
        request(commit, log)


def _marker_not_flushed(append_marker: Any, appends: CoordinatorAppends, *arguments: Any, **options: Any) -> Any:
    with in_place(Change(FlushState, "flush", _nothing)):
        return append_marker(appends, *arguments, **options)


_CHECKPOINT_AHEAD = (around(OffsetCheckpoints, "_write", _ahead),)
FAULTS = (
    # On a healthy disk it does no harm: recovery points are written when the flushes that threads have begun are over. So its
    # workload is short of room for a moment.
    SeededFault(
        "an index is marked as synced before it is",
        1,
        (around(Segment, "unsynced_indexes", _marked_early),),
        steps=workload.WITHOUT_ROOM,
    ),
    SeededFault("records are not synced", None, _unsynced(_is_log)),
    SeededFault("offset and time indexes are not synced", None, _unsynced(lambda path: path.endswith("index"))),
    SeededFault("the names of segments are not synced", None, _unsynced(_is_log_directory)),
    SeededFault("the names of logs are not synced", None, _unsynced(lambda path: path in TWO_DIRECTORIES)),
    SeededFault("a log start offset is not synced", None, _unsynced(lambda path: "log-start-offset" in path)),
    SeededFault("a cleaned segment is not synced", None, _unsynced(lambda path: path.endswith(".cleaned"))),
    SeededFault("the names of a swap are not synced", None, _unsynced(lambda path: path.endswith("/compacted-0"))),
    SeededFault("the copy of a moved log is not synced", None, _unsynced(lambda path: "-future" in path)),
    SeededFault("the metadata log is not synced", None, _unsynced(lambda path: "__cluster_metadata" in path)),
    SeededFault("a snapshot of the metadata is not synced", None, _unsynced(lambda path: path.endswith(".part"))),
    SeededFault("an answer is given before its sync has ended", 1, (around(GroupCommit, "_begin", _answered_early),)),
    SeededFault("flush.messages is forgotten", 1, (Change(FlushState, "flush_soon", _nothing),)),
    SeededFault(
        "flush.ms is forgotten",
        None,
        (around(LogFlusher, "tasks", lambda tasks, flusher, now_ms: tasks(flusher, min(now_ms, 0))),),
        seed=1,
    ),
    SeededFault(
        "a sync counts for what was appended since it began", None, (around(FlushState, "flushed", _counted_to_the_end),)
    ),
    SeededFault("a recovery point is ahead of its data", None, _CHECKPOINT_AHEAD),
    SeededFault("a marker is not flushed", 1, (around(CoordinatorAppends, "append_marker", _marker_not_flushed),)),
    SeededFault("a transaction's decision is not flushed", 1, (around(GroupCommit, "request", _decision_not_flushed),)),
    SeededFault(
        "DeleteRecords is answered before the start is written",
        None,
        (Change(OffsetCheckpoints, "write_start_offsets", _nothing),),
    ),
    SeededFault("an aborted transaction is not indexed", None, (Change(Segment, "append_aborted", _nothing),)),
    SeededFault(
        "a clean stop does not flush",
        None,
        (around(Log, "close", _closed_without_a_flush), Change(Segment, "has_unsynced_index", False)),
    ),
    SeededFault("what a start finds is not synced", None, _unsynced(_is_log), is_at_start=True),
    SeededFault("after a start a recovery point is ahead of its data", None, _CHECKPOINT_AHEAD, is_at_start=True),
)


def explored(loop: asyncio.AbstractEventLoop, seed: int | str, flush_messages: int | None) -> Exploration:
    """The exploration of a workload with threads, both drawn by ``seed``."""
    return Exploration(
        loop,
        overlapping.draw_steps(Random(f"{seed}-steps"), ROUNDS),
        flush_messages=flush_messages,
        directories=TWO_DIRECTORIES,
        threads=str(seed),
        name=f"seed {seed}, log.flush.interval.messages={flush_messages}",
    )


def scripted(loop: asyncio.AbstractEventLoop, steps: Sequence[Callable[[Run], None]], flush_messages: int | None) -> Exploration:
    """The exploration of these steps, without threads."""
    return Exploration(loop, steps, flush_messages=flush_messages, directories=TWO_DIRECTORIES)


def find(loop: asyncio.AbstractEventLoop, fault: SeededFault, seeds: Iterable[int | str], operations: int) -> Finding | None:
    """Look for ``fault`` by the workloads of ``seeds``, around so many of their operations; None if it is not found.

    A request that nobody answers finds nothing: a fault is found by the promise that it breaks.
    """
    for seed in seeds:
        with nullcontext() if fault.is_at_start else fault.put_in():
            if fault.steps:
                exploration = scripted(loop, fault.steps, fault.flush_messages)
            else:
                exploration = explored(loop, seed, fault.flush_messages)
        rng = Random(f"{seed}-points")
        if fault.is_at_start:
            tally = exploration.explore_starts(rng, operations, fault=fault.put_in, until_found=True)
        else:
            tally = exploration.explore_around(rng, operations, until_found=True)
        for finding in tally.findings:
            if isinstance(finding.violation, Violation):
                return finding
    return None
