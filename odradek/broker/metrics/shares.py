"""Metrics of the share coordinator: the state of share partitions, and its shards' loads and appends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.metrics.definitions import Kind, Metric, Section
from odradek.broker.metrics.shards import ShardMetrics, active_shards
from odradek.controller.metadata.topic import SHARE_GROUP_STATE_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.metrics.definitions import MeteredBroker, Reading

_COORDINATOR = "kafka.server:type=share-coordinator-metrics"


def _coordinator(name: str, kind: Kind, attribute: str, help_: str, *labels: str) -> Metric:
    mbean = "".join([_COORDINATOR, *(f",{label}=" for label in labels), f" ({attribute})"])
    return Metric(f"kafka_server_share_coordinator_metrics_{name}", kind, labels, mbean, help_)


def _own(name: str, kind: Kind, help_: str) -> Metric:
    return Metric(f"odradek_{name}", kind, (), "", help_)


SHARE_PARTITIONS = _own("share_partitions", Kind.GAUGE, "Share partitions whose state is kept here.")
WRITES = _coordinator("write", Kind.COUNTER, "write-total", "Writes to the state of share partitions, also refused ones.")
LAST_PRUNED_OFFSET = _coordinator(
    "last_pruned_offset",
    Kind.GAUGE,
    "last-pruned-offset",
    "The offset below which records were last removed from a partition of __share_group_state.",
    "topic",
    "partition",
)
SHARDS = _coordinator(
    "num_partitions", Kind.GAUGE, "num-partitions", "Partitions of __share_group_state, by the state of their shard.", "state"
)
LOAD_TIME = _coordinator("partition_load_time", Kind.SUMMARY, "partition-load-time-avg", "The time to load a shard, in ms.")
LOAD_TIME_MAX = _coordinator(
    "partition_load_time_max", Kind.GAUGE, "partition-load-time-max", "The longest load of a shard, in ms."
)
LOADS_FAILED = _own("share_coordinator_loads_failed", Kind.COUNTER, "Shards whose log could not be read.")
APPEND_TIME = _coordinator(
    "batch_flush_time_ms",
    Kind.SUMMARY,
    "batch-flush-time-ms-p50 and others",
    "The time of an append to __share_group_state, in ms.",
)
APPENDED_RECORDS = _own("share_coordinator_appended_records", Kind.COUNTER, "Records appended to __share_group_state.")
APPENDS_FAILED = _own(
    "share_coordinator_appends_failed", Kind.COUNTER, "Failed appends. The operations that depended on them were rolled back."
)


SHARD_METRICS = ShardMetrics(
    shards=SHARDS,
    load_time=LOAD_TIME,
    load_time_max=LOAD_TIME_MAX,
    loads_failed=LOADS_FAILED,
    append_time=APPEND_TIME,
    appended_records=APPENDED_RECORDS,
    appends_failed=APPENDS_FAILED,
)


def _read(broker: MeteredBroker) -> Iterator[Reading]:
    shards = active_shards(broker.shares)
    yield SHARE_PARTITIONS, [((), sum(len(shard.partitions) for shard in shards.values()))]
    yield WRITES, [((), sum(shard.writes for shard in shards.values()))]
    yield (
        LAST_PRUNED_OFFSET,
        [
            ((SHARE_GROUP_STATE_TOPIC, str(partition)), shard.pruned_offset)
            for partition, shard in shards.items()
            if shard.pruned_offset
        ],
    )
    yield from SHARD_METRICS.read(broker.shares)


SHARE_STATE_SECTION = Section(
    "The share coordinator", (SHARE_PARTITIONS, WRITES, LAST_PRUNED_OFFSET, *SHARD_METRICS.shown()), _read
)
