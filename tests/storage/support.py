"""Logs on a file system in memory, and batches to put into them."""

from odradek.protocol.records import Record, build_batch
from odradek.storage.log.log import Log
from odradek.storage.log.log_config import LogConfig
from tests.memory_filesystem import MemoryFileSystem

NOW_MS = 1_700_000_000_000
DIRECTORY = "/data/t-0"


class Warnings:
    """A ``warn`` that remembers."""

    def __init__(self):
        self.events = []

    def __call__(self, event, **fields):
        self.events.append((event, fields))

    def fields(self, event):
        return [fields for name, fields in self.events if name == event]


def batch(count=1, *, timestamp=NOW_MS, key=None, value=b"value", **options):
    return build_batch([Record(timestamp=timestamp, key=key, value=value)] * count, **options)


def open_log(
    file_system=None,
    *,
    config=None,
    recovery_point=0,
    log_start_offset=0,
    cleaned_offset=None,
    clean=False,
    warn=None,
    now_ms=NOW_MS,
):
    return Log.open(
        file_system or MemoryFileSystem(),
        DIRECTORY,
        "t",
        0,
        config or LogConfig(),
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        cleaned_offset=cleaned_offset,
        clean=clean,
        now_ms=now_ms,
        warn=warn or Warnings(),
    )


def append(log, records=None, *, leader_epoch=0, now_ms=NOW_MS):
    return log.append(batch() if records is None else records, leader_epoch=leader_epoch, now_ms=now_ms)


def read(log, offset, max_bytes=1 << 20, *, upper_offset=None, min_one_batch=True):
    upper = log.log_end_offset if upper_offset is None else upper_offset
    found = log.read(offset, max_bytes, upper_offset=upper, min_one_batch=min_one_batch)
    return None if found is None else found.read()


def names(file_system, directory=DIRECTORY):
    return sorted(file_system.list_dir(directory))
