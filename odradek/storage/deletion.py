"""Deleting old segments of many logs, a few at a time, so that a loop that has other work can go on with it in between.

First each log lets go of what retention does not keep: from then on nobody finds it there. Then the new starts are written down,
once for all. Then files are renamed, and later removed (odradek.storage.segment_removal).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from odradek.protocol.errors import KafkaError
from odradek.storage.log import Log
from odradek.storage.recovery import Warn
from odradek.storage.segment import Segment

if TYPE_CHECKING:
    from odradek.storage.log_manager import LogManager

# Some milliseconds of work each.
_LOGS_SEEN = 500
_LOGS_SHORTENED = 8
_LOGS_RENAMED = 32


def deletion_steps(manager: "LogManager", now_ms: int, warn: Warn) -> Iterator[int]:
    """Delete what is old in all logs; after each step, how many segments have gone in it.

    A log for which that fails is left for the next time, with a warning.
    """
    removed: list[tuple[Log, list[Segment]]] = []
    gone = shortened = 0
    for number, log in enumerate(list(manager.logs.values()), start=1):
        segments = _release(manager, log, now_ms, warn)
        if segments:
            removed.append((log, segments))
            gone += len(segments)
            shortened += 1
        if shortened == _LOGS_SHORTENED or number % _LOGS_SEEN == 0:
            yield gone
            gone = shortened = 0
    if not removed:
        return
    one_by_one = not _write_starts(manager, warn)
    yield gone
    for number, (log, segments) in enumerate(removed, start=1):
        _set_aside(manager, log, segments, warn, one_by_one=one_by_one)
        if number % _LOGS_RENAMED == 0:
            yield 0


def _is_there(manager: "LogManager", log: Log) -> bool:
    """Whether nobody has deleted the log meanwhile: one that has taken its place has files of the same names."""
    return manager.logs.get((log.topic, log.partition)) is log


def _release(manager: "LogManager", log: Log, now_ms: int, warn: Warn) -> list[Segment]:
    try:
        return log.retention.release_old_segments(now_ms) if _is_there(manager, log) else []
    except (KafkaError, OSError) as error:
        warn("old segments not deleted", topic=log.topic, partition=log.partition, reason=str(error))
        if isinstance(error, OSError):
            manager.note_error(log, error)
        return []


def _write_starts(manager: "LogManager", warn: Warn) -> bool:
    try:
        manager.write_start_offsets()
    except OSError as error:
        # The disk may be full: all the more reason to go on.
        warn("log start offsets not written", reason=str(error))
        return False
    return True


def _set_aside(manager: "LogManager", log: Log, segments: list[Segment], warn: Warn, *, one_by_one: bool) -> None:
    if not _is_there(manager, log):
        return
    delay_ms = log.config.file_delete_delay_ms
    try:
        manager.removal.set_aside(log.directory, segments, delay_ms=delay_ms, one_by_one=one_by_one)
    except OSError as error:
        warn("old segments left to the next start", topic=log.topic, partition=log.partition, reason=str(error))
