"""Metrics of the share coordinator: the state of share partitions, and its shards' loads and appends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.metrics.definitions import Kind, Section, of_attribute, own
from odradek.broker.metrics.shards import active_shards, shard_metrics
from odradek.controller.metadata.topic import SHARE_GROUP_STATE_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.metrics.definitions import MeteredBroker, Reading

_COORDINATOR = "kafka.server:type=share-coordinator-metrics"


SHARE_PARTITIONS = own("share_partitions", Kind.GAUGE, "Share partitions whose state is kept here.")
WRITES = of_attribute(
    _COORDINATOR, "write", Kind.COUNTER, "write-total", "Writes to the state of share partitions, also refused ones."
)
LAST_PRUNED_OFFSET = of_attribute(
    _COORDINATOR,
    "last_pruned_offset",
    Kind.GAUGE,
    "last-pruned-offset",
    "The offset below which records were last removed from a partition of __share_group_state.",
    "topic",
    "partition",
)
SHARD_METRICS = shard_metrics(_COORDINATOR, "__share_group_state", "share_coordinator")


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
