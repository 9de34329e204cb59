"""Starts a broker on each damaged data directory, and judges what it says and serves.

A damage is

    refused    the start fails with a line that names the file, or the directory it is in
    offline    the partition of the file is offline, with a reason that names it
    told       a line of the log names the file, its directory or its partition
    harmless   every answer that a client gets is the same as without the damage
    lost tail  unsynced records of a killed broker, cut off between two batches or swapped, as by a loss of power
    SILENT     none of these
    TRACEBACK  an exception that no user should see
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from odradek.controller.metadata.metadata_log import MetadataUnreadable
from odradek.protocol.errors import KafkaError
from odradek.protocol.record_batch import LOG_OVERHEAD, iter_batches
from odradek.storage.directories.checkpoints import CLEAN_SHUTDOWN_FILE, RECOVERY_POINT_FILE
from odradek.storage.errors import DataDirectoryLocked, InconsistentDataDirectory
from odradek.testing import Unanswered
from odradek.testing.blocking import BlockingBroker
from tests.campaigns.damage.life import DATA_DIRS, Left, broker_on
from tests.campaigns.damage.observe import Seen, observe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from odradek.testing.in_process import LogLine


DIRECTORY_REMOVED = "removed, with all"
_TAIL_BYTES = 5
# Partitions whose files change places: the first with each of the others, and so on.
_PARTNERS = {
    "plain-0": ("twin-0", "other-0"),
    "short-0": ("plain-0",),
    "trimmed-0": ("plain-0",),
    "latest-0": ("twin-0", "plain-0"),
    "ledger-0": ("journal-0", "plain-0"),
    "repeating-0": ("again-0", "twin-0"),
    "__consumer_offsets-0": ("__consumer_offsets-1", "plain-0"),
    "__transaction_state-1": ("__consumer_offsets-0",),
}


class Damage(NamedTuple):
    """``paths`` are the files that are damaged, one or two of them; ``files`` is all that is left, damaged."""

    kind: str
    paths: tuple[str, ...]
    files: dict[str, bytes]


def kind_of(path: str) -> str:
    """The kind of a file: its name, or what follows the offset in it."""
    name = path.rpartition("/")[2]
    if name[:20].isdecimal():
        name = name[20:].partition("-")[0] + "." + name.rpartition(".")[2]
        name = name.removeprefix(".")
        name = f"{'snapshot of metadata' if name == 'checkpoint' else name}"
    owner = "metadata" if "/__cluster_metadata-0/" in path else ""
    return f"{name} ({owner})" if owner and owner not in name else name


def damages(files: Mapping[str, bytes]) -> Iterator[Damage]:
    """Every damage of every file."""
    for path, content in files.items():
        rest = {other: data for other, data in files.items() if other != path}
        yield Damage("removed", (path,), rest)
        for kind, left in _cuts(path, content):
            if left != content:
                yield Damage(kind, (path,), rest | {path: left})
        for partner in _partners(path, files):
            if files[partner] != content:
                yield Damage("swapped", (path, partner), rest | {path: files[partner], partner: content})
    directories = sorted({path.rpartition("/")[0] for path in files} - set(DATA_DIRS))
    for directory in directories:
        paths = tuple(path for path in files if path.startswith(f"{directory}/"))
        yield Damage(DIRECTORY_REMOVED, paths, {path: data for path, data in files.items() if path not in paths})


def _cuts(path: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    yield "emptied", b""
    yield "tail cut", content[:-_TAIL_BYTES]
    yield "halved", content[: len(content) // 2]
    if path.endswith(".log"):
        ends = list(batch_ends(content))
        if len(ends) > 1:
            yield "last batch cut", content[: ends[-2]]
    for size in (8, 12, 34):
        if path.endswith({8: ".index", 12: ".timeindex", 34: ".txnindex"}[size]) and len(content) > size:
            yield "last entry cut", content[:-size]


def batch_ends(content: bytes) -> Iterator[int]:
    """The end of each batch of a .log."""
    position = 0
    while position < len(content):
        position += LOG_OVERHEAD + int.from_bytes(content[position + 8 : position + 12], "big")
        yield position


def _partners(path: str, files: Mapping[str, bytes]) -> Iterator[str]:
    directory, _, name = path.rpartition("/")
    if directory == DATA_DIRS[0]:
        other = f"{DATA_DIRS[1]}/{name}"
        if other in files:
            yield other
        return
    for partner in _PARTNERS.get(directory.rpartition("/")[2], ()):
        suffix = name[20:] if name[:20].isdecimal() else name
        candidates = [other for other in files if f"/{partner}/" in other and other.endswith(suffix)]
        same = [other for other in candidates if other.endswith(f"/{name}")]
        yield from (same or candidates)[:1]


REFUSED, OFFLINE, TOLD, HARMLESS, LOST_TAIL = "refused", "offline", "told", "harmless", "lost tail"
SILENT, TRACEBACK = "SILENT", "TRACEBACK"
BAD = (SILENT, TRACEBACK)
VERDICTS = (REFUSED, OFFLINE, TOLD, HARMLESS, LOST_TAIL, SILENT, TRACEBACK)
_MARK, _RECOVERY_POINTS = CLEAN_SHUTDOWN_FILE, RECOVERY_POINT_FILE
# What ``odradek serve`` turns into one line.
_REFUSALS = (DataDirectoryLocked, InconsistentDataDirectory, KafkaError, OSError, MetadataUnreadable)


class Judged(NamedTuple):
    """One damage, and what came of it; ``why`` has details of a verdict that must not be."""

    kind: str
    damage: str
    verdict: str
    paths: tuple[str, ...]
    why: str


def explore(left: Left, *, every: int = 1, wanted: Callable[[Damage], bool] = lambda _: True) -> list[Judged]:
    """Judge the damages of the files in ``left``: ``every`` so manieth of those that are ``wanted``."""
    sound, lines = _start(left, left.files)
    if isinstance(sound, BaseException):
        raise sound
    usual = {_text(line) for line in lines}
    chosen = [damage for damage in damages(left.files) if wanted(damage)]
    return [_judge(left, damage, sound, usual) for damage in chosen[::every]]


def start_on(left: Left, files: dict[str, bytes]) -> Seen:
    """What clients see of a broker on ``files``. Raises why it does not start."""
    seen, _ = _start(left, files)
    if isinstance(seen, BaseException):
        raise seen
    return seen


def _start(left: Left, files: dict[str, bytes]) -> tuple[Seen | BaseException, list[LogLine]]:
    """What clients see of a broker on ``files``, or why it does not start; and what it logs."""
    broker = broker_on(files, left.now_ms)
    running = BlockingBroker(broker)
    try:
        running.start()
        running.settle()
        seen = observe(running, left)
    except Exception as error:  # noqa: BLE001  judged by its class
        return error, list(broker.lines)
    finally:
        if broker.is_running:
            running.kill()
        running.close()
    return seen, list(broker.lines)


def _judge(left: Left, damage: Damage, sound: Seen, usual: set[str]) -> Judged:
    seen, lines = _start(left, damage.files)
    verdict, why = _verdict(damage, seen, [line for line in lines if _text(line) not in usual], sound, left)
    kind = "directory" if damage.kind == DIRECTORY_REMOVED else kind_of(damage.paths[0])
    return Judged(kind, damage.kind, verdict, damage.paths, why)


def _verdict(damage: Damage, seen: Seen | BaseException, lines: list[LogLine], sound: Seen, left: Left) -> tuple[str, str]:
    bad = [line for line in lines if _is_fault(line)]
    if bad:
        return TRACEBACK, _text(bad[0])
    if isinstance(seen, Unanswered):
        return SILENT, f"a request is not answered; {[_text(line) for line in lines]}"
    if isinstance(seen, BaseException):
        if not isinstance(seen, _REFUSALS):
            return TRACEBACK, repr(seen)
        return (REFUSED, str(seen)) if _names(damage, str(seen)) else (SILENT, f"refused: {seen}")
    naming = [line for line in lines if _names(damage, _text(line))]
    different = [f"{key}: {value!r:.300} -> {seen.get(key)!r:.300}" for key, value in sound.items() if seen.get(key) != value]
    if any(line.event == "partition offline" for line in naming):
        return OFFLINE, "; ".join(_text(line) for line in naming)
    if naming:
        return TOLD, "; ".join(_text(line) for line in naming) + (f" | {different}" if different else "")
    if not different:
        return HARMLESS, ""
    if _is_lost_tail(damage, left) or _is_unsynced(damage, left):
        return LOST_TAIL, ""
    return SILENT, f"{different[:3]} {[_text(line) for line in lines]}"


def _is_lost_tail(damage: Damage, left: Left) -> bool:
    """Whether all that is missing is unsynced batches of a killed broker: the rest of the file consists of whole batches."""
    (path, *others) = damage.paths
    directory, _, name = path.rpartition("/")
    content = damage.files.get(path, b"")
    ends = [0, *batch_ends(left.files[path])] if path.endswith(".log") else []
    if others or not content or len(content) not in ends or _is_clean(left):
        return False
    return int(name[:20]) + len(list(_offsets(content))) >= _recovery_point(directory, left)


def _is_unsynced(damage: Damage, left: Left) -> bool:
    """Return whether never synced segments of a killed broker were swapped. No synced data says which partition they are of."""
    if damage.kind != "swapped" or _is_clean(left) or not all(path.endswith(".log") for path in damage.paths):
        return False
    places = [path.rpartition("/") for path in damage.paths]
    return all(int(name[:20]) >= _recovery_point(directory, left) for directory, _, name in places)


def _is_clean(left: Left) -> bool:
    return bool(left.files.keys() & {f"{root}/{_MARK}" for root in DATA_DIRS})


def _recovery_point(directory: str, left: Left) -> int:
    """Return the offset before which the partition in ``directory`` is synced."""
    parent, _, log = directory.rpartition("/")
    topic, _, index = log.rpartition("-")
    rows = [line.split() for line in left.files[f"{parent}/{_RECOVERY_POINTS}"].decode().splitlines()]
    return next(int(row[2]) for row in rows if row[:2] == [topic, index])


def _offsets(content: bytes) -> Iterator[int]:
    for _, header in iter_batches(content):
        yield from range(header.base_offset, header.next_offset)


def _text(line: LogLine) -> str:
    return f"{line.event} {dict(line.fields)}"


def _is_fault(line: LogLine) -> bool:
    error = line.fields.get("exc_info")
    return error is not None and not isinstance(error, KafkaError | OSError)


def _names(damage: Damage, text: str) -> bool:
    """Whether ``text`` names a damaged file, its directory, or its partition."""
    for path in damage.paths:
        directory = path.rpartition("/")[0]
        topic, _, index = directory.rpartition("/")[2].rpartition("-")
        if path in text or (index and (re.search(f"{directory}[/':, ]", text) or f"'{topic}', 'partition': {index}" in text)):
            return True
    return False
