"""Topics and partitions: throughput, sizes, offsets, offline partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.metrics.definitions import Kind, Metric, Section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.metrics.definitions import Reading, Sample
    from odradek.broker.metrics.metered import MeteredBroker
    from odradek.broker.replica.partition import Partition

_TOPIC = ("topic",)
_PARTITION = ("topic", "partition")


def _topic_counter(name: str, mbean: str, help_: str) -> Metric:
    labelled = f"kafka.server:type=BrokerTopicMetrics,name={mbean},topic="
    return Metric(f"kafka_server_brokertopicmetrics_{name}", Kind.COUNTER, _TOPIC, labelled, help_)


def _log_gauge(mbean: str, help_: str) -> Metric:
    labelled = f"kafka.log:type=Log,name={mbean},topic=,partition="
    return Metric(f"kafka_log_log_{mbean.lower()}", Kind.GAUGE, _PARTITION, labelled, help_)


def _broker_gauge(type_: str, mbean: str, help_: str, domain: str = "server") -> Metric:
    labelled = f"kafka.{domain}:type={type_},name={mbean}"
    return Metric(f"kafka_{domain}_{type_.lower()}_{mbean.lower()}", Kind.GAUGE, (), labelled, help_)


RECORDS_IN = _topic_counter("messagesin", "MessagesInPerSec", "Records appended since the broker started.")
BYTES_IN = _topic_counter("bytesin", "BytesInPerSec", "Bytes of record batches appended since the broker started.")
BYTES_OUT = _topic_counter("bytesout", "BytesOutPerSec", "Bytes of record batches sent to consumers since the broker started.")
SIZE = _log_gauge("Size", "Bytes of record batches in the log.")
SEGMENTS = _log_gauge("NumLogSegments", "Segments of the log.")
START_OFFSET = _log_gauge("LogStartOffset", "Offset of the log's first record.")
END_OFFSET = _log_gauge("LogEndOffset", "Offset of the next record.")
HIGH_WATERMARK = Metric(
    "odradek_partition_high_watermark", Kind.GAUGE, _PARTITION, "", "The offset up to which consumers may read."
)
PARTITIONS = _broker_gauge("ReplicaManager", "PartitionCount", "Partitions on this broker.")
OFFLINE_REPLICAS = _broker_gauge("ReplicaManager", "OfflineReplicaCount", "Partitions on this broker whose log is unusable.")
TOPICS = _broker_gauge("KafkaController", "GlobalTopicCount", "Topics.", "controller")
GLOBAL_PARTITIONS = _broker_gauge("KafkaController", "GlobalPartitionCount", "Partitions of all topics.", "controller")
OFFLINE_PARTITIONS = _broker_gauge("KafkaController", "OfflinePartitionsCount", "Partitions without a leader.", "controller")


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
    offline = 0
    for partition in broker.partitions:
        offline += partition.log is None
        labels = (partition.topic, str(partition.index))
        for metric, value in _log_values(partition):
            samples[metric].append((labels, value))
    yield from samples.items()
    here = len(broker.partitions)
    yield PARTITIONS, [((), here)]
    yield OFFLINE_REPLICAS, [((), offline)]
    topics = broker.controller.image.topics
    records = [record for topic in topics.values() for record in topic.partitions.values()]
    yield TOPICS, [((), len(topics))]
    yield GLOBAL_PARTITIONS, [((), len(records))]
    # A partition whose log is offline on a broker alone has no leader, whatever the metadata say.
    is_alone = all(tuple(record.replicas) == (broker.node_id,) for record in records)
    yield OFFLINE_PARTITIONS, [((), offline if is_alone else sum(record.leader < 0 for record in records))]


def _log_values(partition: Partition) -> Iterator[tuple[Metric, int]]:
    """Values of an online partition; none for an offline one, since a gap is better than outdated figures."""
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
