"""The metrics after an event in the broker, its cleaner or its replicas."""

from types import SimpleNamespace

import pytest

from odradek.broker.metrics.partitions import AT_MIN_ISR, LEADERS, REPLICATION_SECTION, UNDER_MIN_ISR, UNDER_REPLICATED
from odradek.broker.metrics.table import SECTIONS, read_all
from odradek.broker.replica.partition import Partition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.records import Record, build_batch
from odradek.storage.cleaning.cleaner import CleanStats
from odradek.storage.log.log_config import LogConfig
from tests.broker.metrics.bed import plain
from tests.broker.replica.replication_bed import FIRST, LEADER, LEADER_EPOCH, SECOND, TOPIC_ID, ReplicationBed


async def test_the_readings_are_those_of_the_table_each_once_and_with_its_labels(bed):
    bed.broker.controller.auto_create(["a"])
    bed.produce("a", b"x")
    readings = read_all(bed.broker)
    listed = [metric for section in SECTIONS for metric in section.metrics]
    assert sorted(metric.name for metric, _ in readings) == sorted(metric.name for metric in listed)
    assert {metric for metric, _ in readings} == set(listed)
    assert all(len(labels) == len(metric.labels) for metric, samples in readings for labels, _ in samples)


async def test_no_label_values_occur_twice(bed):
    bed.broker.controller.auto_create(["a", "b"])
    for version in (3, 4):
        bed.request(ApiKey.API_VERSIONS, version)
    bed.produce("a", b"x")
    for metric, samples in read_all(bed.broker):
        labels = [labels for labels, _ in samples]
        assert len(labels) == len(set(labels)), metric.name


async def test_requests_are_told_by_api_and_version(bed):
    for version in (3, 4, 4):
        bed.request(ApiKey.API_VERSIONS, version)
    read = bed.read()
    assert read["kafka_network_requestmetrics_requests_total"] == {("ApiVersions", "3"): 1, ("ApiVersions", "4"): 2}
    assert plain(read["kafka_network_requestmetrics_totaltimems"]["ApiVersions",]) == (3, 0)


async def test_errors_are_told_by_name_over_all_versions(bed):
    for version in (5, 6):
        name = {"topic_names": ["gone"]} if version == 5 else {"topics": [{"name": "gone"}]}
        bed.request(ApiKey.DELETE_TOPICS, version, **name)
    assert bed.read()["kafka_network_requestmetrics_errors_total"] == {("DeleteTopics", "UNKNOWN_TOPIC_OR_PARTITION"): 2}


async def test_the_time_of_a_fetch_that_waited_is_remote(bed):
    bed.broker.controller.auto_create(["a"])
    bed.fetch("a", 0, max_wait_ms=500)
    waiting = bed.read()
    bed.clock.advance(500)
    after = bed.read()
    assert waiting["kafka_server_delayedoperationpurgatory_numdelayedoperations"]["Fetch",] == 1
    assert waiting["kafka_server_delayedoperationpurgatory_purgatorysize"]["Fetch",] == 1
    assert after["kafka_server_delayedoperationpurgatory_numdelayedoperations"]["Fetch",] == 0
    assert after["odradek_purgatory_expired_total"]["Fetch",] == 1
    assert plain(after["kafka_network_requestmetrics_remotetimems"]["Fetch",]) == (1, 500)
    assert plain(after["kafka_network_requestmetrics_localtimems"]["Fetch",]) == (1, 0)
    assert plain(after["kafka_network_requestmetrics_totaltimems"]["Fetch",]) == (1, 500)


async def test_a_topics_records_and_bytes_are_counted_in_and_out(bed):
    bed.broker.controller.auto_create(["a", "b"])
    size = bed.produce("a", b"one", b"two") + bed.produce("a", b"three")
    bed.fetch("a", 0)
    bed.fetch("a", 2)
    read = bed.read()
    assert read["kafka_server_brokertopicmetrics_messagesin_total"] == {("a",): 3, ("b",): 0}
    assert read["kafka_server_brokertopicmetrics_bytesin_total"] == {("a",): size, ("b",): 0}
    last_batch = read["kafka_server_brokertopicmetrics_bytesout_total"]["a",] - size
    assert 0 < last_batch < size


@pytest.mark.parametrize("settings", [{"num_partitions": 2}])
async def test_a_partitions_log_is_told_by_size_and_offsets(bed):
    bed.broker.controller.auto_create(["a"])
    size = bed.produce("a", b"one", b"two", partition=1)
    bed.request(ApiKey.DELETE_RECORDS, 2, topics=[{"name": "a", "partitions": [{"partition_index": 1, "offset": 1}]}])
    read = bed.read()
    assert read["kafka_log_log_size"] == {("a", "0"): 0, ("a", "1"): size}
    assert read["kafka_log_log_logstartoffset"] == {("a", "0"): 0, ("a", "1"): 1}
    assert read["kafka_log_log_logendoffset"] == {("a", "0"): 0, ("a", "1"): 2}
    assert read["odradek_partition_high_watermark"] == {("a", "0"): 0, ("a", "1"): 2}
    assert read["kafka_controller_kafkacontroller_globaltopiccount"] == {(): 1}
    assert read["kafka_server_replicamanager_partitioncount"] == {(): 2}


@pytest.mark.parametrize("settings", [{"num_partitions": 2}])
async def test_an_offline_partition_is_counted_and_its_log_left_out(bed):
    bed.broker.controller.auto_create(["a"])
    bed.broker.partitions.require("a", 0).take_offline("its disk is gone")
    read = bed.read()
    assert read["kafka_server_replicamanager_offlinereplicacount"] == {(): 1}
    assert read["kafka_controller_kafkacontroller_offlinepartitionscount"] == {(): 1}
    assert list(read["kafka_log_log_size"]) == [("a", "1")]


async def test_fetch_sessions_are_counted(bed):
    bed.broker.controller.auto_create(["a"])
    bed.fetch("a", 0, session_epoch=0)
    read = bed.read()
    assert read["kafka_server_fetchsessioncache_numincrementalfetchsessions"] == {(): 1}
    assert read["kafka_server_fetchsessioncache_numincrementalfetchpartitionscached"] == {(): 1}


# Metrics of compaction.
MANAGER = "kafka_log_logcleanermanager_"
CLEANER = "kafka_log_logcleaner_"
BACKOFF_MS = 15_000


def _fill(bed, topic):
    bed.broker.controller.auto_create([topic])
    log = bed.broker.partitions.require(topic, 0).require_log()
    log.config = LogConfig(cleanup_policy=("compact",), segment_bytes=500, index_interval_bytes=100)
    for number in range(20):
        log.append(build_batch([Record(timestamp=0, key=b"k", value=b"%d" % number)]), leader_epoch=0, now_ms=0)


async def test_before_anything_was_cleaned_there_is_nothing_to_tell(bed):
    read = bed.read()
    assert read["odradek_log_cleans_total"] == {(): 0}
    assert read[f"{CLEANER}cleaner_recopy_percent"] == {(): 0}
    assert read[f"{MANAGER}uncleanable_partitions_count"] == {(): 0}


async def test_a_clean_is_told(bed):
    _fill(bed, "a")
    bed.clock.advance(BACKOFF_MS + 5)
    read, stats = bed.read(), bed.broker.log_cleaner.last_stats
    assert isinstance(stats, CleanStats)
    assert read["odradek_log_cleans_total"] == {(): 1}
    assert read[f"{CLEANER}cleaner_recopy_percent"] == {(): int(100 * stats.written_bytes / stats.read_bytes)}
    assert read[f"{MANAGER}time_since_last_run_ms"] == {(): 5}


async def test_a_log_that_was_given_up_is_counted_until_it_is_gone(bed):
    _fill(bed, "a")
    log = bed.broker.partitions.require("a", 0).require_log()
    segment = next(iter(log.segments))
    # Below what severs it, and the handle.
    segment.file._file._file.data[70] ^= 1
    bed.clock.advance(BACKOFF_MS)
    given_up = bed.read()
    bed.broker.controller.delete_topics([bed.broker.controller.image.topics["a"].topic_id])
    bed.clock.advance(BACKOFF_MS)
    for read, expected in ((given_up, 1), (bed.read(), 0)):
        assert read[f"{MANAGER}uncleanable_partitions_count"] == {(): expected}


# Metrics of in-sync and out-of-sync replicas.
def readings(*partitions):
    return {metric: value for metric, [((), value)] in REPLICATION_SECTION.read(SimpleNamespace(partitions=partitions))}


@pytest.mark.parametrize(
    ("isr", "under_replicated", "under_min", "at_min"),
    [((LEADER, FIRST, SECOND), 0, 0, 0), ((LEADER, FIRST), 1, 0, 1), ((LEADER,), 1, 1, 0)],
)
def test_a_leader_counts_replicas_in_sync(isr, under_replicated, under_min, at_min):
    found = readings(ReplicationBed(isr=isr, min_in_sync=2).partition)
    assert found == {LEADERS: 1, UNDER_REPLICATED: under_replicated, UNDER_MIN_ISR: under_min, AT_MIN_ISR: at_min}


def test_the_only_replica_is_as_many_as_there_must_be():
    bed = ReplicationBed()
    assert readings(Partition("t", 0, TOPIC_ID, 3, bed.log, lambda _: None))[AT_MIN_ISR] == 1


def test_a_follower_counts_for_nothing():
    bed = ReplicationBed(isr=(LEADER,))
    bed.partition.become_follower(SECOND, LEADER_EPOCH + 1)
    assert set(readings(bed.partition).values()) == {0}
