"""Faults that are put into the broker, or between it and its disk, and that the campaign has to find.

Each is a mistake that a change of the code might bring: a sync left out, an answer before its wait, a mark before its sync. The
workload runs with the fault; the states of the disk are then examined without it.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

from odradek.broker.replica.group_commit import GroupCommit
from odradek.storage.checkpoints import RECOVERY_POINT_FILE
from odradek.storage.coordinator_appends import CoordinatorAppends
from odradek.storage.flush_state import FlushState
from odradek.storage.log import Log
from odradek.storage.log_flusher import LogFlusher
from odradek.storage.offset_checkpoints import OffsetCheckpoints
from odradek.storage.segment import Segment
from odradek.timing.background import outcome_of
from tests.campaigns.power_loss import overlapping, workload
from tests.campaigns.power_loss.disk import RecordingDisk, RecordingFile
from tests.campaigns.power_loss.explore import Exploration
from tests.campaigns.power_loss.node import TWO_DIRECTORIES
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from tests.campaigns.power_loss.explore import Finding
    from tests.campaigns.power_loss.run import Run

ROUNDS = 3


class SeededFault(NamedTuple):
    """``put_in`` is in effect while the workload runs with this ``log.flush.interval.messages``.

    ``seed`` mostly finds it. ``steps`` are a workload made for it, which takes the place of one drawn by the seed.
    ``is_at_start``: it is in effect during a start that follows instead.
    """

    name: str
    flush_messages: int | None
    put_in: Callable[[], AbstractContextManager[object]]
    seed: int = 0
    steps: Sequence[Callable[[Run], None]] = ()
    is_at_start: bool = False


@contextmanager
def _unsynced(is_left_out: Callable[[str], bool]) -> Iterator[None]:
    """Files and directories whose syncs are left out, by their paths."""
    sync, sync_dir = RecordingFile.sync, RecordingDisk.sync_dir

    def sync_some(file: RecordingFile) -> None:
        if not is_left_out(file.path):
            sync(file)

    def sync_some_dir(disk: RecordingDisk, path: str) -> None:
        if not is_left_out(path):
            sync_dir(disk, path)

    with patch.object(RecordingFile, "sync", sync_some), patch.object(RecordingDisk, "sync_dir", sync_some_dir):
        yield


def _is_log(path: str) -> bool:
    return path.endswith(".log") and "-future" not in path and "__cluster_metadata" not in path


def _is_log_directory(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.rpartition("-")[2].isdecimal() and "__cluster_metadata" not in name


@contextmanager
def _index_marked_early() -> Iterator[None]:
    unsynced_indexes = Segment.unsynced_indexes

    def marked(segment: Segment) -> Any:
        found = unsynced_indexes(segment)
        for each in found:
            each.synced()
        return found

    with patch.object(Segment, "unsynced_indexes", marked):
        yield


@contextmanager
def _answered_before_the_sync() -> Iterator[None]:
    begin = GroupCommit._begin

    class Early:
        """Delivers the outcome first, and does the work then."""

        def __init__(self, background: Any) -> None:
            self._background = background

        def run(self, work: Callable[[], Any], then: Callable[[Any], object], *, name: str) -> None:
            then(outcome_of(lambda: None))
            self._background.run(work, lambda outcome: None, name=name)

    def early(commit: GroupCommit, log: Log) -> None:
        background = commit._background
        with patch.object(commit, "_background", Early(background)):
            begin(commit, log)

    with patch.object(GroupCommit, "_begin", early):
        yield


@contextmanager
def _counted_to_the_end_of_the_log() -> Iterator[None]:
    flushed = FlushState.flushed

    def counted(state: FlushState, task: Any, now_ms: int) -> None:
        flushed(state, task._replace(offset=max(task.offset, state._local.log_end_offset)), now_ms)

    with patch.object(FlushState, "flushed", counted):
        yield


@contextmanager
def _checkpoint_ahead() -> Iterator[None]:
    write = OffsetCheckpoints._write

    def ahead(checkpoints: OffsetCheckpoints, name: str, offset_of: Callable[[Log], int | None], *others: Any) -> None:
        write(checkpoints, name, (lambda log: log.log_end_offset) if name == RECOVERY_POINT_FILE else offset_of, *others)

    with patch.object(OffsetCheckpoints, "_write", ahead):
        yield


@contextmanager
def _closed_without_a_flush() -> Iterator[None]:
    close = Log.close

    def closed(log: Log, *, clean: bool, now_ms: int) -> None:
        if clean:
            log.flush_state.recovery_point = log.log_end_offset
        close(log, clean=clean, now_ms=now_ms)

    with patch.object(Log, "close", closed), patch.object(Segment, "has_unsynced_index", False):
        yield


@contextmanager
def _decision_not_flushed() -> Iterator[None]:
    request = GroupCommit.request

    def requested(commit: GroupCommit, log: Log) -> None:
        if log.topic == "__transaction_state":
            log.flush_state.awaits_flush = False
        else:
            request(commit, log)

    with patch.object(GroupCommit, "request", requested):
        yield


@contextmanager
def _flush_ms_forgotten() -> Iterator[None]:
    tasks = LogFlusher.tasks

    def forgotten(flusher: LogFlusher, now_ms: int) -> Any:
        return tasks(flusher, min(now_ms, 0))

    with patch.object(LogFlusher, "tasks", forgotten):
        yield


@contextmanager
def _flush_soon_forgotten() -> Iterator[None]:
    with patch.object(FlushState, "flush_soon", lambda state, now_ms: None):
        yield


@contextmanager
def _starts_not_written() -> Iterator[None]:
    with patch.object(OffsetCheckpoints, "write_start_offsets", lambda checkpoints: None):
        yield


@contextmanager
def _marker_not_flushed() -> Iterator[None]:
    append_marker = CoordinatorAppends.append_marker

    def unflushed(appends: CoordinatorAppends, *arguments: Any, **options: Any) -> Any:
        with patch.object(FlushState, "flush", lambda state, now_ms: None):
            return append_marker(appends, *arguments, **options)

    with patch.object(CoordinatorAppends, "append_marker", unflushed):
        yield


@contextmanager
def _aborted_not_indexed() -> Iterator[None]:
    with patch.object(Segment, "append_aborted", lambda segment, aborted: None):
        yield


FAULTS = (
    # On a healthy disk it does no harm: recovery points are written when the flushes that threads have begun are over. So its
    # workload is short of room for a moment.
    SeededFault("an index is marked as synced before it is", 1, _index_marked_early, steps=workload.WITHOUT_ROOM),
    SeededFault("records are not synced", None, lambda: _unsynced(_is_log)),
    SeededFault("offset and time indexes are not synced", None, lambda: _unsynced(lambda path: path.endswith("index"))),
    SeededFault("the names of segments are not synced", None, lambda: _unsynced(_is_log_directory)),
    SeededFault("the names of logs are not synced", None, lambda: _unsynced(lambda path: path in TWO_DIRECTORIES)),
    SeededFault("a log start offset is not synced", None, lambda: _unsynced(lambda path: "log-start-offset" in path)),
    SeededFault("a cleaned segment is not synced", None, lambda: _unsynced(lambda path: path.endswith(".cleaned"))),
    SeededFault("the names of a swap are not synced", None, lambda: _unsynced(lambda path: path.endswith("/compacted-0"))),
    SeededFault("the copy of a moved log is not synced", None, lambda: _unsynced(lambda path: "-future" in path)),
    SeededFault("the metadata log is not synced", None, lambda: _unsynced(lambda path: "__cluster_metadata" in path)),
    SeededFault("a snapshot of the metadata is not synced", None, lambda: _unsynced(lambda path: path.endswith(".part"))),
    SeededFault("an answer is given before its sync has ended", 1, _answered_before_the_sync),
    SeededFault("flush.messages is forgotten", 1, _flush_soon_forgotten),
    SeededFault("flush.ms is forgotten", None, _flush_ms_forgotten, seed=1),
    SeededFault("a sync counts for what was appended since it began", None, _counted_to_the_end_of_the_log),
    SeededFault("a recovery point is ahead of its data", None, _checkpoint_ahead),
    SeededFault("a marker is not flushed", 1, _marker_not_flushed),
    SeededFault("a transaction's decision is not flushed", 1, _decision_not_flushed),
    SeededFault("DeleteRecords is answered before the start is written", None, _starts_not_written),
    SeededFault("an aborted transaction is not indexed", None, _aborted_not_indexed),
    SeededFault("a clean stop does not flush", None, _closed_without_a_flush),
    SeededFault("what a start finds is not synced", None, lambda: _unsynced(_is_log), is_at_start=True),
    SeededFault("after a start a recovery point is ahead of its data", None, _checkpoint_ahead, is_at_start=True),
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
