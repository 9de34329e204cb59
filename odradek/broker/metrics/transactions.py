"""Metrics of the transaction coordinator: transactional ids, transactions, markers, and its shards' loads and appends.

As with the group coordinator, a shard's counters begin at 0 each time it is loaded. The partitions' producer ids are here, too.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from odradek.broker.metrics.definitions import Distribution, Kind, Metric, Section
from odradek.broker.metrics.shards import ShardMetrics, active_shards
from odradek.coordinator.transaction.states import PREPARED, STATE_NAMES, TransactionState
from odradek.coordinator.transaction.transactions import DURATION_BOUNDS_MS, OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.metrics.definitions import MeteredBroker, Reading, Sample
    from odradek.broker.replica.partition import Partition
    from odradek.coordinator.transaction.transaction_shard import TransactionShard

_MARKERS = "kafka.coordinator.transaction:type=TransactionMarkerChannelManager"
_COORDINATOR = "kafka.server:type=transaction-coordinator-metrics"
_REPLICA_MANAGER = "kafka.server:type=ReplicaManager"
_SHOWN_STATES = tuple(
    state for state in TransactionState if state not in {TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE}
)
# The states of a transaction that is not completely committed or aborted.
_OPEN = PREPARED | {TransactionState.ONGOING}
# As in Kafka, a transaction is late if its last write is this much older than the longest transaction timeout.
_LATE_AFTER_MS = 5 * 60 * 1000


def _gauge(mbean: str, name: str, help_: str) -> Metric:
    prefix = mbean.replace(":type=", "_").replace(".", "_").lower()
    return Metric(f"{prefix}_{name.lower()}", Kind.GAUGE, (), f"{mbean},name={name}", help_)


def _own(name: str, kind: Kind, help_: str, label: str = "") -> Metric:
    return Metric(f"odradek_{name}", kind, (label,) if label else (), "", help_)


IDS = _own("transactional_ids", Kind.GAUGE, "Transactional ids, by state.", "state")
OPEN = _own("transactions_open", Kind.GAUGE, "Transactions that are ongoing, or being committed or aborted.")
OLDEST = _own(
    "transaction_oldest_open_age_ms", Kind.GAUGE, "The age of the oldest open transaction, in ms. Absent if none is open."
)
ENDED = _own(
    "transactions_ended", Kind.COUNTER, "Transactions completed: committed or aborted, with all markers written.", "result"
)
DURATION = _own(
    "transaction_duration_ms",
    Kind.HISTOGRAM,
    "The time from a transaction's first partition to its last marker, in ms.",
    "result",
)
TIMED_OUT = _own("transactions_timed_out", Kind.COUNTER, "Transactions aborted at their timeout.")
IDS_EXPIRED = _own("transactional_ids_expired", Kind.COUNTER, "Unused transactional ids that expired.")
MARKERS_WAITING = _gauge(
    _MARKERS,
    "UnknownDestinationQueueSize",
    "Markers not written yet: their partition is unavailable, or they exceed one turn of the event loop.",
)
COMPLETIONS_WAITING = _gauge(
    _MARKERS,
    "LogAppendRetryQueueSize",
    "Transactions with all markers written, but without their completion in __transaction_state.",
)
PRODUCER_IDS = _gauge(_REPLICA_MANAGER, "ProducerIdCount", "Producer ids that partitions remember, counted once per partition.")
LATE = _gauge(
    _REPLICA_MANAGER,
    "PartitionsWithLateTransactionsCount",
    "Partitions whose oldest open transaction last wrote more than transaction.max.timeout.ms plus five minutes ago.",
)
SHARDS = _own(
    "transaction_coordinator_partitions",
    Kind.GAUGE,
    "Partitions of __transaction_state, by the state of their shard.",
    "state",
)
LOAD_TIME = Metric(
    "kafka_server_transaction_coordinator_metrics_partition_load_time",
    Kind.SUMMARY,
    (),
    f"{_COORDINATOR} (partition-load-time-avg)",
    "The time to load a shard, in ms.",
)
LOAD_TIME_MAX = Metric(
    "kafka_server_transaction_coordinator_metrics_partition_load_time_max",
    Kind.GAUGE,
    (),
    f"{_COORDINATOR} (partition-load-time-max)",
    "The longest load of a shard, in ms.",
)
LOADS_FAILED = _own("transaction_coordinator_loads_failed", Kind.COUNTER, "Shards whose log could not be read.")
LOADED_RECORDS = _own("transaction_coordinator_loaded_records", Kind.COUNTER, "Records read while loading shards.")
APPEND_TIME = _own("transaction_coordinator_append_time_ms", Kind.SUMMARY, "The time of an append to __transaction_state, in ms.")
APPENDED_RECORDS = _own("transaction_coordinator_appended_records", Kind.COUNTER, "Records appended to __transaction_state.")
APPENDS_FAILED = _own(
    "transaction_coordinator_appends_failed",
    Kind.COUNTER,
    "Failed appends. The operations that depended on them were rolled back.",
)


SHARD_METRICS = ShardMetrics(
    shards=SHARDS,
    load_time=LOAD_TIME,
    load_time_max=LOAD_TIME_MAX,
    loads_failed=LOADS_FAILED,
    loaded_records=LOADED_RECORDS,
    append_time=APPEND_TIME,
    appended_records=APPENDED_RECORDS,
    appends_failed=APPENDS_FAILED,
)


def _read_transactions(broker: MeteredBroker) -> Iterator[Reading]:
    shards = list(active_shards(broker.transactions).values())
    states: Counter[int] = Counter()
    starts_ms = []
    for shard in shards:
        for value in shard.transactions.by_id.values():
            states[value.status] += 1
            if value.status in _OPEN:
                starts_ms.append(value.start_ms)
    yield IDS, [((STATE_NAMES[state],), states[state]) for state in _SHOWN_STATES]
    yield OPEN, [((), len(starts_ms))]
    yield OLDEST, [((), max(broker.clock.now_ms() - min(starts_ms), 0))] if starts_ms else []
    yield from _read_ends(shards)
    yield MARKERS_WAITING, [((), sum(len(shard.markers) for shard in shards))]
    yield COMPLETIONS_WAITING, [((), sum(shard.markers.unfinished for shard in shards))]
    yield from _read_producers(broker)


def _read_ends(shards: list[TransactionShard]) -> Iterator[Reading]:
    counters = [shard.transactions.counters for shard in shards]
    ended: list[Sample] = []
    durations: list[Sample] = []
    for state, result in OUTCOMES.items():
        ended.append(((result,), sum(each.transitions[state] for each in counters)))
        rows = [[0] * (len(DURATION_BOUNDS_MS) + 1), *(each.duration_buckets[state] for each in counters)]
        buckets = [sum(column) for column in zip(*rows, strict=True)]
        total_ms = sum(each.duration_sum_ms[state] for each in counters)
        durations.append(((result,), Distribution(DURATION_BOUNDS_MS, buckets, total_ms)))
    yield ENDED, ended
    yield DURATION, durations
    yield TIMED_OUT, [((), sum(each.timed_out for each in counters))]
    yield IDS_EXPIRED, [((), sum(each.expired for each in counters))]


def _read_producers(broker: MeteredBroker) -> Iterator[Reading]:
    latest_ms = broker.clock.now_ms() - broker.config["transaction.max.timeout.ms"] - _LATE_AFTER_MS
    producer_ids = late = 0
    for partition in broker.partitions:
        if partition.log is not None:
            producer_ids += len(partition.log.producers.by_id)
            late += _is_late(partition, latest_ms)
    yield PRODUCER_IDS, [((), producer_ids)]
    yield LATE, [((), late)]


def _is_late(partition: Partition, latest_ms: int) -> bool:
    producers = partition.require_log().producers
    first_offset = producers.first_open_offset
    return first_offset is not None and 0 < producers.by_id[producers.open_transactions[first_offset]].last_timestamp < latest_ms


TRANSACTION_SECTION = Section(
    "Transactions",
    (
        IDS,
        OPEN,
        OLDEST,
        ENDED,
        DURATION,
        TIMED_OUT,
        IDS_EXPIRED,
        MARKERS_WAITING,
        COMPLETIONS_WAITING,
        PRODUCER_IDS,
        LATE,
    ),
    _read_transactions,
)
TRANSACTION_SHARD_SECTION = Section(
    "The transaction coordinator's shards",
    SHARD_METRICS.shown(),
    lambda broker: SHARD_METRICS.read(broker.transactions),
)
