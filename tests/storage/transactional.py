"""Transactions on a log, without a coordinator: its batches and markers."""

from odradek.storage.log.log_config import LogConfig
from tests.memory_filesystem import MemoryFileSystem
from tests.storage.support import NOW_MS, append, batch, open_log

SMALL_SEGMENTS = LogConfig(segment_bytes=400, index_interval_bytes=100)


def transactional_batch(sequence=0, *, count=1, producer=7, epoch=0, **options):
    return batch(count, producer_id=producer, producer_epoch=epoch, base_sequence=sequence, transactional=True, **options)


def send(log, sequence=0, *, count=1, producer=7, epoch=0, verified=True):
    records = transactional_batch(sequence, count=count, producer=producer, epoch=epoch)
    return log.append(records, leader_epoch=0, now_ms=NOW_MS, transaction_verified=verified)


def end(log, *, commit, producer=7, epoch=0, coordinator_epoch=0, version=0, now_ms=NOW_MS, leader_epoch=0):
    return log.coordinator_appends.append_marker(
        producer, epoch, coordinator_epoch, commit, leader_epoch=leader_epoch, now_ms=now_ms, transaction_version=version
    )


def with_history(config=None):
    """A file system and a log of committed, aborted, open and overlapping transactions, with other batches between them."""
    file_system = MemoryFileSystem()
    log = open_log(file_system, config=config)
    sequences = dict.fromkeys(range(1, 6), 0)
    for number in range(40):
        producer = number % 5 + 1
        send(log, sequences[producer], producer=producer, count=2)
        sequences[producer] += 2
        if number % 3 == 0:
            append(log)
        if number % 7 in (2, 5):
            end(log, commit=number % 7 == 2, producer=(number + 2) % 5 + 1)
    return file_system, log


def state_of(log):
    """All that is known of producers, transactions and aborts, in a form to be compared."""
    producers = log.producers
    by_id = {
        key: (found.epoch, found.coordinator_epoch, found.last_sequence, found.last_timestamp, found.transaction_start)
        for key, found in producers.by_id.items()
    }
    aborted = log.segments.aborted_transactions(log.log_start_offset, log.log_end_offset)
    return by_id, producers.open_transactions, aborted
