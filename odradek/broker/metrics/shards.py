"""Metrics of a coordinator's shards: loads and appends, as its runtime counts them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from odradek.broker.metrics.definitions import Kind, Sum, of_attribute, own
from odradek.coordinator.runtime.environment import RuntimeCounters
from odradek.coordinator.runtime.states import ShardState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.coordination.coordinator_host import CoordinatorHost, ShardT
    from odradek.broker.metrics.definitions import Metric, Reading

_SHOWN_STATES: Final = (ShardState.LOADING, ShardState.ACTIVE, ShardState.FAILED)


def active_shards(coordinator: CoordinatorHost[ShardT]) -> dict[int, ShardT]:
    """Return the active shards by partition; none before there is a runtime."""
    if not coordinator.has_runtime:
        return {}
    runtime = coordinator.runtime
    active = [partition for partition, state in runtime.states().items() if state is ShardState.ACTIVE]
    return {partition: runtime.read(partition, lambda shard, _: shard) for partition in active}


class ShardMetrics(NamedTuple):
    """The metrics of one coordinator. Those that it does not show are None."""

    shards: Metric
    load_time: Metric
    load_time_max: Metric
    loads_failed: Metric
    append_time: Metric
    appended_records: Metric
    appends_failed: Metric
    loaded_bytes: Metric | None = None
    loaded_records: Metric | None = None
    skipped_records: Metric | None = None
    append_time_max: Metric | None = None

    def shown(self) -> tuple[Metric, ...]:
        """Return the metrics that are shown, in their order."""
        loads = (self.shards, self.load_time, self.load_time_max, self.loads_failed)
        loaded = (self.loaded_bytes, self.loaded_records, self.skipped_records)
        appends = (self.append_time, self.append_time_max, self.appended_records, self.appends_failed)
        return tuple(metric for metric in (*loads, *loaded, *appends) if metric is not None)

    def read(self, coordinator: CoordinatorHost[Any]) -> Iterator[Reading]:
        """Yield the readings of all that are shown."""
        runtime = coordinator.runtime if coordinator.has_runtime else None
        states = Counter(() if runtime is None else runtime.states().values())
        counters = RuntimeCounters() if runtime is None else runtime.counters
        yield self.shards, [((state.value,), states[state]) for state in _SHOWN_STATES]
        for metric, value in (
            (self.load_time, Sum(counters.loads, counters.load_ms)),
            (self.load_time_max, counters.longest_load_ms),
            (self.loads_failed, counters.failed_loads),
            (self.loaded_bytes, counters.loaded_bytes),
            (self.loaded_records, counters.loaded_records),
            (self.skipped_records, counters.skipped_records),
            (self.append_time, Sum(counters.appends, counters.append_ms)),
            (self.append_time_max, counters.longest_append_ms),
            (self.appended_records, counters.appended_records),
            (self.appends_failed, counters.append_failures),
        ):
            if metric is not None:
                yield metric, [((), value)]


def shard_metrics(mbean: str, topic: str, prefix: str, **others: Metric) -> ShardMetrics:
    """Return the metrics that all coordinators have, and ``others``. ``prefix`` begins the names that Kafka does not have."""
    load_time = "The time to load a shard, in ms."
    longest_load = "The longest load of a shard, in ms."
    states = f"Partitions of {topic}, by the state of their shard."
    append_time = f"The time of an append to {topic}, in ms."
    rollbacks = "Failed appends. The operations that depended on them were rolled back."
    common = {
        "shards": of_attribute(mbean, "num_partitions", Kind.GAUGE, "num-partitions", states, "state"),
        "load_time": of_attribute(mbean, "partition_load_time", Kind.SUMMARY, "partition-load-time-avg", load_time),
        "load_time_max": of_attribute(mbean, "partition_load_time_max", Kind.GAUGE, "partition-load-time-max", longest_load),
        "loads_failed": own(f"{prefix}_loads_failed", Kind.COUNTER, "Shards whose log could not be read."),
        "append_time": of_attribute(
            mbean, "batch_flush_time_ms", Kind.SUMMARY, "batch-flush-time-ms-p50 and others", append_time
        ),
        "appended_records": own(f"{prefix}_appended_records", Kind.COUNTER, f"Records appended to {topic}."),
        "appends_failed": own(f"{prefix}_appends_failed", Kind.COUNTER, rollbacks),
    }
    return ShardMetrics(**{**common, **others})
