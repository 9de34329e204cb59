"""``odradek transactions``: list, describe, find and abort hanging ones, on any broker, as ``kafka-transactions.sh`` does.

Two commands end transactions that nobody else ends. ``abort`` writes a marker to one partition, bypassing the coordinator; it
is for a transaction that no coordinator knows. ``force-terminate`` fences the producer of a transactional id, so that the
coordinator aborts the transaction everywhere.
"""

from dataclasses import asdict
from typing import Any

import click

from odradek.cli.cluster import Cluster, Refused, Unreachable, check, patiently
from odradek.cli.open_transactions import (
    ProducerOnPartition,
    describe_producers,
    describe_transaction,
    hanging,
    partitions_in,
    partitions_of,
)
from odradek.cli.options import Servers, asks_a_broker, command_group, exit_status, names_a_partition, row_of, show
from odradek.client.admin_apis import (
    INIT_PRODUCER_ID,
    LIST_TRANSACTIONS,
    LIST_TRANSACTIONS_BY_DURATION,
    LIST_TRANSACTIONS_BY_PATTERN,
    WRITE_TXN_MARKERS,
)
from odradek.client.api import Api
from odradek.client.apis import TRANSACTIONAL_ID
from odradek.coordinator.transaction.states import PREPARED, STATE_NAMES, TransactionState
from odradek.coordinator.transaction.transactions import NO_TIMEOUT_MS
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_transactions import TransactionState as DescribedTransaction
from odradek.protocol.message_types.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.message_types.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from odradek.protocol.message_types.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from odradek.timing.system_clock import SystemClock

_LISTED = ("transactional_id", "coordinator", "producer_id", "state")
_TRANSACTION = (
    "transactional_id",
    "coordinator",
    "producer_id",
    "producer_epoch",
    "state",
    "timeout_ms",
    "two_phase_commit",
    "start_time_ms",
    "duration_ms",
    "partitions",
)
_PRODUCER = ("producer_id", "producer_epoch", "coordinator_epoch", "last_sequence", "last_timestamp", "start_offset")
_HANGING = (
    "topic",
    "partition",
    "producer_id",
    "producer_epoch",
    "coordinator_epoch",
    "start_offset",
    "last_timestamp",
    "duration_min",
)

_OPEN = frozenset(STATE_NAMES[state] for state in (TransactionState.ONGOING, *PREPARED))
_MINUTE_MS = 60_000


@command_group()
def transactions() -> None:
    """Manage transactions of any Kafka broker."""


@transactions.command("list")
@asks_a_broker
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(list(STATE_NAMES.values()), case_sensitive=False),
    help="Only transactional ids in this state; repeatable.",
)
@click.option(
    "--producer-id", "producer_ids", multiple=True, type=int, help="Only transactional ids with this producer id; repeatable."
)
@click.option(
    "--duration-filter",
    "duration_ms",
    metavar="MS",
    type=click.IntRange(0),
    help="Only transactions that have run for longer than this.",
)
@click.option("--transactional-id-pattern", "pattern", metavar="REGEX", help="Only transactional ids that match in full.")
def list_transactions(
    bootstrap: Servers,
    as_json: bool,
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    duration_ms: int | None,
    pattern: str | None,
) -> int:
    """List every transactional id, from every coordinator."""
    filters: dict[str, Any] = {"state_filters": list(states), "producer_id_filters": list(producer_ids)}
    api = LIST_TRANSACTIONS
    if duration_ms is not None:
        filters["duration_filter"], api = duration_ms, LIST_TRANSACTIONS_BY_DURATION
    if pattern is not None:
        filters["transactional_id_pattern"], api = pattern, LIST_TRANSACTIONS_BY_PATTERN
    request = ListTransactionsRequest(**filters)
    with Cluster(bootstrap) as cluster:
        rows = [row for node in cluster.nodes() for row in _listed(cluster, node.node_id, api, request)]
    show(_LISTED, sorted(rows, key=lambda row: str(row["transactional_id"])), as_json=as_json)
    return exit_status(cluster.unreachable)


@transactions.command()
@click.argument("names", nargs=-1, required=True, metavar="TRANSACTIONAL-ID...")
@asks_a_broker
def describe(names: tuple[str, ...], bootstrap: Servers, as_json: bool) -> int:
    """Describe state, producer, timeout and partitions. While a transaction ends, only partitions without a marker are shown."""
    rows = []
    failures: list[Refused | Unreachable] = []
    now_ms = SystemClock().now_ms()
    with Cluster(bootstrap) as cluster:
        for name in dict.fromkeys(names):
            try:
                rows.append(_described(*describe_transaction(cluster, name), now_ms))
            except (Refused, Unreachable) as failure:
                failures.append(failure)
    if rows or as_json:
        show(_TRANSACTION, rows, as_json=as_json)
    return exit_status(failures)


@transactions.command("describe-producers")
@asks_a_broker
@names_a_partition
@click.option("--broker-id", type=click.IntRange(0), help="The replica to ask.  [default: the leader]")
def describe_active_producers(bootstrap: Servers, as_json: bool, topic: str, partition: int, broker_id: int | None) -> int:
    """List a partition's producers, and the start offsets of their open transactions."""
    with Cluster(bootstrap) as cluster:
        found, refusals = describe_producers(cluster, partitions_of(cluster, topic, partition), broker_id)
    failures = [*refusals, *cluster.unreachable]
    if not failures:
        show(_PRODUCER, [asdict(each) for each in found], as_json=as_json)
    return exit_status(failures)


@transactions.command("find-hanging")
@asks_a_broker
@click.option("--broker-id", type=click.IntRange(0), help="Only partitions with a replica on this broker; ask that replica.")
@click.option("--topic", help="Only this topic.  [default: all]")
@click.option("--partition", type=click.IntRange(0), help="Only this partition of the topic.")
@click.option(
    "--max-transaction-timeout",
    "max_timeout_minutes",
    metavar="MINUTES",
    type=click.IntRange(0),
    default=15,
    show_default=True,
    help="Leave out transactions with newer writes: they may still end by themselves.",
)
def find_hanging(
    bootstrap: Servers,
    as_json: bool,
    broker_id: int | None,
    topic: str | None,
    partition: int | None,
    max_timeout_minutes: int,
) -> int:
    """Find transactions that are open on a partition, and that no coordinator will end."""
    if partition is not None and topic is None:
        raise click.UsageError("--partition needs --topic")
    clock = SystemClock()
    with Cluster(bootstrap) as cluster:
        leaders = partitions_of(cluster, topic, partition, broker_id)
        found, refusals = describe_producers(cluster, leaders, broker_id)
        latest_ms = clock.now_ms() - max_timeout_minutes * _MINUTE_MS
        candidates = [each for each in found if each.start_offset is not None and each.last_timestamp < latest_ms]
        rows = [_hanging_row(each, clock.now_ms()) for each in hanging(cluster, candidates)]
    show(_HANGING, rows, as_json=as_json)
    return exit_status([*refusals, *cluster.unreachable])


def _listed(
    cluster: Cluster, node_id: int, api: Api[ListTransactionsRequest, ListTransactionsResponse], request: ListTransactionsRequest
) -> list[dict[str, Any]]:
    """Return the transactional ids of one coordinator; none if it does not answer."""

    def attempt() -> ListTransactionsResponse:
        connection = cluster.node(node_id)
        if not connection.serves(api):
            raise Unreachable(f"broker {node_id} is too old for this filter of transactions")
        answer = connection.call(api, request)
        check(f"transactions of broker {node_id}", answer.error_code)
        return answer

    answer = cluster.tried(lambda: patiently(attempt))
    return [
        row_of(_LISTED, str(each.transactional_id), node_id, int(each.producer_id), each.transaction_state)
        for each in (() if answer is None else answer.transaction_states)
    ]


def _described(coordinator: int, described: DescribedTransaction, now_ms: int) -> dict[str, Any]:
    timeout_ms, start_ms = described.transaction_timeout_ms, described.transaction_start_time_ms
    is_open = described.transaction_state in _OPEN and start_ms >= 0
    return row_of(
        _TRANSACTION,
        str(described.transactional_id),
        coordinator,
        int(described.producer_id),
        described.producer_epoch,
        described.transaction_state,
        timeout_ms,
        timeout_ms == NO_TIMEOUT_MS,
        start_ms if is_open else None,
        now_ms - start_ms if is_open else None,
        [f"{topic}-{index}" for topic, index in sorted(partitions_in(described))],
    )


def _hanging_row(producer: ProducerOnPartition, now_ms: int) -> dict[str, Any]:
    return {**asdict(producer), "duration_min": (now_ms - producer.last_timestamp) // _MINUTE_MS}


_ABORTED = ("topic", "partition", "producer_id", "producer_epoch", "coordinator_epoch")
# This producer never writes, and the next one sets its own timeout.
_TERMINATION_TIMEOUT_MS = 60_000


@transactions.command()
@asks_a_broker
@names_a_partition
@click.option("--start-offset", type=click.IntRange(0), help="The transaction's start offset, as shown by find-hanging.")
@click.option("--producer-id", type=click.IntRange(0), help="Instead of --start-offset, for brokers older than 3.0.")
@click.option("--producer-epoch", type=click.IntRange(0), help="With --producer-id.")
@click.option("--coordinator-epoch", type=click.IntRange(-1), help="With --producer-id.")
def abort(
    bootstrap: Servers,
    as_json: bool,
    topic: str,
    partition: int,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
) -> int:
    """Abort a hanging transaction on one partition, by writing the marker that nobody else will write."""
    producer = (producer_id, producer_epoch, coordinator_epoch)
    named = [each for each in producer if each is not None]
    if (start_offset is None) == (not named):
        raise click.UsageError("give either --start-offset, or --producer-id, --producer-epoch and --coordinator-epoch")
    if named and len(named) < len(producer):
        raise click.UsageError("--producer-id, --producer-epoch and --coordinator-epoch belong together")
    with Cluster(bootstrap) as cluster:
        if start_offset is not None:
            named = _starting_at(cluster, topic, partition, start_offset)
        # Before its first marker a producer has coordinator epoch -1. Epoch 0 does not exceed any coordinator's.
        named[2] = max(named[2], 0)
        row = row_of(_ABORTED, topic, partition, *named)
        _write_abort(cluster, row)
    show(_ABORTED, [row], as_json=as_json)
    return 0


@transactions.command("force-terminate")
@click.argument("name", metavar="TRANSACTIONAL-ID")
@asks_a_broker
def force_terminate(name: str, bootstrap: Servers, as_json: bool) -> int:
    """Fence the producer of a transactional id, and abort its open transaction.

    Use it for a transaction without a timeout that its manager is not going to end (KIP-939).
    """
    with Cluster(bootstrap) as cluster:
        describe_transaction(cluster, name)
        fenced = patiently(lambda: _fence(cluster, name))
    row = {"transactional_id": name, "producer_id": int(fenced.producer_id), "producer_epoch": fenced.producer_epoch}
    show(tuple(row), [row], as_json=as_json)
    return 0


def _starting_at(cluster: Cluster, topic: str, partition: int, start_offset: int) -> list[int]:
    """Return producer id, producer epoch and coordinator epoch of the transaction that begins there. Raises Refused."""
    found, refusals = describe_producers(cluster, partitions_of(cluster, topic, partition))
    if refusals:
        raise refusals[0]
    for each in found:
        if each.start_offset == start_offset:
            return [each.producer_id, each.producer_epoch, each.coordinator_epoch]
    reason = f"no open transaction begins at offset {start_offset}"
    raise Refused(f"{topic}-{partition}", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, reason)


def _write_abort(cluster: Cluster, row: dict[str, Any]) -> None:
    topic, partition = row["topic"], row["partition"]
    marker = WritableTxnMarker(
        producer_id=row["producer_id"],
        producer_epoch=row["producer_epoch"],
        coordinator_epoch=row["coordinator_epoch"],
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
    )

    def attempt() -> None:
        (leader,) = partitions_of(cluster, topic, partition).values()
        if leader < 0:
            raise Refused(f"{topic}-{partition}", ErrorCode.LEADER_NOT_AVAILABLE)
        answer = cluster.node(leader).call(WRITE_TXN_MARKERS, WriteTxnMarkersRequest(markers=[marker]))
        check(f"{topic}-{partition}", answer.markers[0].topics[0].partitions[0].error_code)

    patiently(attempt)


def _fence(cluster: Cluster, transactional_id: str) -> InitProducerIdResponse:
    connection, _ = cluster.coordinator(transactional_id, TRANSACTIONAL_ID)
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=_TERMINATION_TIMEOUT_MS)
    answer = connection.call(INIT_PRODUCER_ID, request)
    check(transactional_id, answer.error_code)
    return answer
