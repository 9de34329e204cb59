"""Compacted logs in memory, cleaned here and now."""

from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record, build_batch, read_records
from odradek.storage.cleaning.candidates import first_dirty_offset, look_at
from odradek.storage.cleaning.cleaner import CleanerLimits, clean
from odradek.storage.cleaning.swap import CleanJob, clean_log
from odradek.storage.log.log_config import LogConfig
from tests.storage.support import NOW_MS, Warnings

DAY_MS = 24 * 60 * 60 * 1000
LIMITS = CleanerLimits(dedupe_buffer_bytes=1 << 20, load_factor=0.9, io_buffer_bytes=1 << 16)


def compacted(**options):
    options = {"cleanup_policy": ("compact",), "segment_bytes": 300, "index_interval_bytes": 100} | options
    return LogConfig(**options)


def put(log, *pairs, now_ms=NOW_MS, timestamp=None, compression=0, **producer):
    """Append one batch of (key, value) pairs."""
    records = [Record(timestamp=now_ms if timestamp is None else timestamp, key=key, value=value) for key, value in pairs]
    batch = build_batch(records, compression=compression, **producer)
    return log.append(batch, leader_epoch=0, now_ms=now_ms, transaction_verified=True).first_offset


def clean_up(log, cleaned_offset=None, *, now_ms=NOW_MS, limits=LIMITS, pace=lambda size: None, on_loop=lambda action: action()):
    """Clean what may be cleaned, whatever the ratio; the stats, or None if there is nothing dirty."""
    dirty_offset = first_dirty_offset(log, cleaned_offset, Warnings())
    found = look_at(log, dirty_offset, now_ms)
    if found is None:
        return None
    job = CleanJob.of(log, found.first_dirty_offset, found.first_uncleanable_offset, now_ms)
    return clean_log(job, lambda swap_in: clean(job.plan, log.file_system, limits, pace, swap_in), on_loop)


def roll_and_clean(log, cleaned_offset=None, **options):
    """Clean all that the log has."""
    log.roll(options.get("now_ms", NOW_MS))
    return clean_up(log, cleaned_offset, **options)


def headers_of(log):
    """The headers of all batches, by way of ``Log.read``."""
    return [header for header, _ in batches_of(log)]


def batches_of(log):
    offset = log.log_start_offset
    found = []
    while offset < log.log_end_offset:
        piece = log.read(offset, 1 << 20, upper_offset=log.log_end_offset, min_one_batch=True)
        if piece is None:
            break
        data = piece.read()
        for position, header in iter_batches(data):
            found.append((header, data[position : position + header.size_bytes]))
            offset = header.next_offset
    return found


def records_of(log):
    """Every record that is not a marker."""
    return [record for header, batch in batches_of(log) if not header.is_control for record in read_records(batch)]


def pairs_of(log):
    """(offset, key, value) of every record."""
    return [(record.offset, record.key, record.value) for record in records_of(log)]


def read_committed(log):
    """What a consumer with isolation.level=read_committed sees: as Kafka's clients do it, by the index of aborted ones."""
    end = log.log_end_offset if log.first_unstable_offset is None else log.first_unstable_offset
    aborted = sorted(log.aborted_transactions(log.log_start_offset, end), key=lambda entry: entry[1], reverse=True)
    skipped = set()
    seen = []
    for header, batch in batches_of(log):
        if header.next_offset > end:
            break
        while aborted and aborted[-1][1] <= header.last_offset:
            skipped.add(aborted.pop()[0])
        if header.is_control:
            if header.record_count and next(read_records(batch)).key == b"\0\0\0\0":
                skipped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in skipped):
            seen += [(record.offset, record.key, record.value) for record in read_records(batch)]
    return seen
