"""What the metrics say of compaction."""

from odradek.protocol.records import Record, build_batch
from odradek.storage.cleaner.cleaner import CleanStats
from odradek.storage.log_config import LogConfig
from tests.broker.metrics.bed import on_a_broker

MANAGER = "kafka_log_logcleanermanager_"
CLEANER = "kafka_log_logcleaner_"
BACKOFF_MS = 15_000


def _fill(bed, topic):
    bed.broker.controller.auto_create([topic])
    log = bed.broker.partitions.require(topic, 0).require_log()
    log.config = LogConfig(cleanup_policy=("compact",), segment_bytes=500, index_interval_bytes=100)
    for number in range(20):
        log.append(build_batch([Record(timestamp=0, key=b"k", value=b"%d" % number)]), leader_epoch=0, now_ms=0)


async def test_before_anything_was_cleaned_there_is_nothing_to_tell():
    read = await on_a_broker(lambda bed: bed.read())
    assert read["odradek_log_cleans_total"] == {(): 0}
    assert read[f"{CLEANER}cleaner_recopy_percent"] == {(): 0}
    assert read[f"{MANAGER}uncleanable_partitions_count"] == {(): 0}


async def test_a_clean_is_told():
    def scenario(bed):
        _fill(bed, "a")
        bed.clock.advance(BACKOFF_MS + 5)
        return bed.read(), bed.broker.log_cleaner.last_stats

    read, stats = await on_a_broker(scenario)
    assert isinstance(stats, CleanStats)
    assert read["odradek_log_cleans_total"] == {(): 1}
    assert read[f"{CLEANER}cleaner_recopy_percent"] == {(): int(100 * stats.written_bytes / stats.read_bytes)}
    assert read[f"{MANAGER}time_since_last_run_ms"] == {(): 5}


async def test_a_log_that_was_given_up_is_counted_until_it_is_gone():
    def scenario(bed):
        _fill(bed, "a")
        log = bed.broker.partitions.require("a", 0).require_log()
        segment = next(iter(log.segments))
        # Below what severs it, and the handle.
        segment.file._file._file.data[70] ^= 1
        bed.clock.advance(BACKOFF_MS)
        given_up = bed.read()
        bed.broker.controller.delete_topics([bed.broker.controller.image.topics["a"].topic_id])
        bed.clock.advance(BACKOFF_MS)
        return given_up, bed.read()

    for read, expected in zip(await on_a_broker(scenario), (1, 0), strict=True):
        assert read[f"{MANAGER}uncleanable_partitions_count"] == {(): expected}
