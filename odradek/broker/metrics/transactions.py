"""Metrics of the transaction coordinator: transactional ids, transactions, markers, and its shards' loads and appends.

As with the group coordinator, a shard's counters begin at 0 each time it is loaded. The partitions' producer ids are here, too.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from odradek.broker.metrics.definitions import Kind, Section, of_mbean, own, summed
from odradek.broker.metrics.shards import active_shards, shard_metrics
from odradek.coordinator.transaction.states import PREPARED, STATE_NAMES, TransactionState
from odradek.coordinator.transaction.transactions import DURATION_BOUNDS_MS, OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.metrics.definitions import MeteredBroker, Reading, Sample
    from odradek.broker.replica.partition import Partition
    from odradek.coordinator.transaction.transaction_shard import TransactionShard

_MARKERS = "kafka.coordinator.transaction:type=TransactionMarkerChannelManager"
_REPLICA_MANAGER = "kafka.server:type=ReplicaManager"
_SHOWN_STATES = tuple(
    state for state in TransactionState if state not in {TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE}
)
# The states of a transaction that is not completely committed or aborted.
_OPEN = PREPARED | {TransactionState.ONGOING}
# As in Kafka, a transaction is late if its last write is this much older than the longest transaction timeout.
_LATE_AFTER_MS = 5 * 60 * 1000


IDS = own("transactional_ids", Kind.GAUGE, "Transactional ids, by state.", "state")
OPEN = own("transactions_open", Kind.GAUGE, "Transactions that are ongoing, or being committed or aborted.")
OLDEST = own(
    "transaction_oldest_open_age_ms", Kind.GAUGE, "The age of the oldest open transaction, in ms. Absent if none is open."
)
ENDED = own(
    "transactions_ended", Kind.COUNTER, "Transactions completed: committed or aborted, with all markers written.", "result"
)
DURATION = own(
    "transaction_duration_ms",
    Kind.HISTOGRAM,
    "The time from a transaction's first partition to its last marker, in ms.",
    "result",
)
TIMED_OUT = own("transactions_timed_out", Kind.COUNTER, "Transactions aborted at their timeout.")
IDS_EXPIRED = own("transactional_ids_expired", Kind.COUNTER, "Unused transactional ids that expired.")
MARKERS_WAITING = of_mbean(
    f"{_MARKERS},name=UnknownDestinationQueueSize",
    Kind.GAUGE,
    "Markers not written yet: their partition is unavailable, or they exceed one turn of the event loop.",
)
COMPLETIONS_WAITING = of_mbean(
    f"{_MARKERS},name=LogAppendRetryQueueSize",
    Kind.GAUGE,
    "Transactions with all markers written, but without their completion in __transaction_state.",
)
PRODUCER_IDS = of_mbean(
    f"{_REPLICA_MANAGER},name=ProducerIdCount",
    Kind.GAUGE,
    "Producer ids that partitions remember, counted once per partition.",
)
LATE = of_mbean(
    f"{_REPLICA_MANAGER},name=PartitionsWithLateTransactionsCount",
    Kind.GAUGE,
    "Partitions whose oldest open transaction last wrote more than transaction.max.timeout.ms plus five minutes ago.",
)
SHARD_METRICS = shard_metrics(
    "kafka.server:type=transaction-coordinator-metrics",
    "__transaction_state",
    "transaction_coordinator",
    shards=own(
        "transaction_coordinator_partitions",
        Kind.GAUGE,
        "Partitions of __transaction_state, by the state of their shard.",
        "state",
    ),
    loaded_records=own("transaction_coordinator_loaded_records", Kind.COUNTER, "Records read while loading shards."),
    append_time=own(
        "transaction_coordinator_append_time_ms", Kind.SUMMARY, "The time of an append to __transaction_state, in ms."
    ),
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
        total_ms = sum(each.duration_sum_ms[state] for each in counters)
        durations.append(((result,), summed(DURATION_BOUNDS_MS, [each.duration_buckets[state] for each in counters], total_ms)))
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
