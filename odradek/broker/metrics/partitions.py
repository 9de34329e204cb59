"""Metrics of topics and partitions: throughput, sizes, offsets, offline partitions; leaders, in-sync replicas; compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.metrics.definitions import Kind, Metric, Section, of_mbean, own

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.metrics.definitions import MeteredBroker, Reading, Sample
    from odradek.broker.replica.partition import Partition


def _topic_counter(name: str, help_: str) -> Metric:
    return of_mbean(f"kafka.server:type=BrokerTopicMetrics,name={name}", Kind.COUNTER, help_, "topic")


def _log_gauge(name: str, help_: str) -> Metric:
    return of_mbean(f"kafka.log:type=Log,name={name}", Kind.GAUGE, help_, "topic", "partition")


def _replica_gauge(name: str, help_: str) -> Metric:
    return of_mbean(f"kafka.server:type=ReplicaManager,name={name}", Kind.GAUGE, help_)


def _controller_gauge(name: str, help_: str) -> Metric:
    return of_mbean(f"kafka.controller:type=KafkaController,name={name}", Kind.GAUGE, help_)


RECORDS_IN = _topic_counter("MessagesInPerSec", "Records appended since the broker started.")
BYTES_IN = _topic_counter("BytesInPerSec", "Bytes of record batches appended since the broker started.")
BYTES_OUT = _topic_counter("BytesOutPerSec", "Bytes of record batches sent to consumers since the broker started.")
SIZE = _log_gauge("Size", "Bytes of record batches in the log.")
SEGMENTS = _log_gauge("NumLogSegments", "Segments of the log.")
START_OFFSET = _log_gauge("LogStartOffset", "Offset of the log's first record.")
END_OFFSET = _log_gauge("LogEndOffset", "Offset of the next record.")
HIGH_WATERMARK = own("partition_high_watermark", Kind.GAUGE, "The offset up to which consumers may read.", "topic", "partition")
PARTITIONS = _replica_gauge("PartitionCount", "Partitions on this broker.")
OFFLINE_REPLICAS = _replica_gauge("OfflineReplicaCount", "Partitions on this broker whose log is unusable.")
TOPICS = _controller_gauge("GlobalTopicCount", "Topics.")
GLOBAL_PARTITIONS = _controller_gauge("GlobalPartitionCount", "Partitions of all topics.")
OFFLINE_PARTITIONS = _controller_gauge("OfflinePartitionsCount", "Partitions without a leader.")


def _read_topics(broker: MeteredBroker) -> Iterator[Reading]:
    records: dict[str, int] = {}
    bytes_in: dict[str, int] = {}
    bytes_out: dict[str, int] = {}
    for partition in broker.partitions:
        topic = partition.topic
        records[topic] = records.get(topic, 0) + partition.high_watermark - partition.found_offset
        bytes_in[topic] = bytes_in.get(topic, 0) + partition.appended_bytes
        bytes_out[topic] = bytes_out.get(topic, 0) + partition.fetched_bytes
    for metric, counts in ((RECORDS_IN, records), (BYTES_IN, bytes_in), (BYTES_OUT, bytes_out)):
        yield metric, [((topic,), count) for topic, count in counts.items()]


def _read_partitions(broker: MeteredBroker) -> Iterator[Reading]:
    samples: dict[Metric, list[Sample]] = {metric: [] for metric in (SIZE, SEGMENTS, START_OFFSET, END_OFFSET, HIGH_WATERMARK)}
    offline = set()
    for partition in broker.partitions:
        if partition.log is None:
            offline.add((partition.topic_id, partition.index))
        labels = (partition.topic, str(partition.index))
        for metric, value in _log_values(partition):
            samples[metric].append((labels, value))
    yield from samples.items()
    here = len(broker.partitions)
    yield PARTITIONS, [((), here)]
    yield OFFLINE_REPLICAS, [((), len(offline))]
    topics = broker.controller.image.topics
    records = [record for topic in topics.values() for record in topic.partitions.values()]
    yield TOPICS, [((), len(topics))]
    yield GLOBAL_PARTITIONS, [((), len(records))]
    # A leader whose log is offline cannot lead, even if the metadata name no other.
    leaderless = [
        record
        for record in records
        if record.leader < 0 or (record.leader == broker.node_id and (record.topic_id, record.partition_id) in offline)
    ]
    yield OFFLINE_PARTITIONS, [((), len(leaderless))]


def _log_values(partition: Partition) -> Iterator[tuple[Metric, int]]:
    """Yield the values of an online partition; none for an offline one, since a gap is better than outdated figures."""
    log = partition.log
    if log is not None:
        yield SIZE, log.size_bytes
        yield SEGMENTS, len(log.segments)
        yield START_OFFSET, log.log_start_offset
        yield END_OFFSET, log.log_end_offset
        yield HIGH_WATERMARK, partition.high_watermark


TOPIC_SECTION = Section("Topics", (RECORDS_IN, BYTES_IN, BYTES_OUT), _read_topics)
PARTITION_SECTION = Section(
    "Partitions",
    (
        SIZE,
        SEGMENTS,
        START_OFFSET,
        END_OFFSET,
        HIGH_WATERMARK,
        PARTITIONS,
        OFFLINE_REPLICAS,
        TOPICS,
        GLOBAL_PARTITIONS,
        OFFLINE_PARTITIONS,
    ),
    _read_partitions,
)


LEADERS = _replica_gauge("LeaderCount", "Partitions that this broker leads.")
UNDER_REPLICATED = _replica_gauge("UnderReplicatedPartitions", "Partitions led by this broker that have out-of-sync replicas.")
UNDER_MIN_ISR = _replica_gauge(
    "UnderMinIsrPartitionCount", "Partitions led by this broker with fewer in-sync replicas than min.insync.replicas."
)
AT_MIN_ISR = _replica_gauge(
    "AtMinIsrPartitionCount", "Partitions led by this broker with exactly min.insync.replicas in-sync replicas."
)


def _read(broker: MeteredBroker) -> Iterator[Reading]:
    leaders = under_replicated = under_min_isr = at_min_isr = 0
    for partition in broker.partitions:
        if partition.leader is None or partition.log is None:
            continue
        leaders += 1
        followers = partition.leader.followers
        if followers is None:
            # There is one replica, in sync, and one is the minimum.
            at_min_isr += 1
            continue
        in_sync = len(followers.isr.committed)
        under_replicated += in_sync < followers.replica_count
        under_min_isr += in_sync < followers.min_in_sync
        at_min_isr += in_sync == followers.min_in_sync
    yield LEADERS, [((), leaders)]
    yield UNDER_REPLICATED, [((), under_replicated)]
    yield UNDER_MIN_ISR, [((), under_min_isr)]
    yield AT_MIN_ISR, [((), at_min_isr)]


REPLICATION_SECTION = Section("Replication", (LEADERS, UNDER_REPLICATED, UNDER_MIN_ISR, AT_MIN_ISR), _read)


_MANAGER = "kafka.log:type=LogCleanerManager"
_CLEANER = "kafka.log:type=LogCleaner"

UNCLEANABLE = Metric(
    "kafka_log_logcleanermanager_uncleanable_partitions_count",
    Kind.GAUGE,
    (),
    f"{_MANAGER},name=uncleanable-partitions-count,logDirectory=",
    "Partitions that are not compacted again before the next start. The broker's log gives the reason.",
)
MAX_DIRTY = of_mbean(
    f"{_MANAGER},name=max-dirty-percent",
    Kind.GAUGE,
    "The dirty share of the next log to be cleaned, in percent. 0: no log needs cleaning.",
)
SINCE_LAST_LOOK = of_mbean(
    f"{_MANAGER},name=time-since-last-run-ms",
    Kind.GAUGE,
    "The time since the cleaner last looked for logs to clean, in ms.",
)
RECOPY = of_mbean(
    f"{_CLEANER},name=cleaner-recopy-percent",
    Kind.GAUGE,
    "The share of the bytes read by the last clean that were written again, in percent.",
)
UTILIZATION = of_mbean(
    f"{_CLEANER},name=max-buffer-utilization-percent",
    Kind.GAUGE,
    "The share of the memory for keys that the last clean used, in percent. At 100, the clean did not reach the end of the log.",
)
LAST_CLEAN = of_mbean(f"{_CLEANER},name=max-clean-time-secs", Kind.GAUGE, "The duration of the last clean, in seconds.")
CLEANS = own("log_cleans", Kind.COUNTER, "Finished cleans, each of one partition.")


def _read_cleaner(broker: MeteredBroker) -> Iterator[Reading]:
    cleaner = broker.log_cleaner
    stats = cleaner.last_stats
    yield UNCLEANABLE, [((), len(cleaner.uncleanable))]
    yield MAX_DIRTY, [((), int(100 * cleaner.max_dirty_ratio))]
    yield SINCE_LAST_LOOK, [((), broker.clock.now_ms() - cleaner.last_look_ms)]
    yield RECOPY, [((), int(100 * stats.written_bytes / max(stats.read_bytes, 1)) if stats else 0)]
    yield UTILIZATION, [((), int(100 * stats.map_utilization) if stats else 0)]
    yield LAST_CLEAN, [((), cleaner.last_clean_ms / 1000)]
    yield CLEANS, [((), cleaner.cleans)]


CLEANER_SECTION = Section(
    "Compaction", (UNCLEANABLE, MAX_DIRTY, SINCE_LAST_LOOK, RECOPY, UTILIZATION, LAST_CLEAN, CLEANS), _read_cleaner
)
