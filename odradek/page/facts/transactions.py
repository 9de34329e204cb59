"""The transactions of the cluster: open ones, how old they are, and which partitions they hold back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.client.admin_apis import DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS
from odradek.client.apis import LATEST_TIMESTAMP
from odradek.coordinator.transaction.states import PREPARED, STATE_NAMES, TransactionState
from odradek.page.facts.source import ask_nodes, leaders_of, list_offsets, metadata, rights
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.describe_producers import DescribeProducersRequest, TopicRequest
from odradek.protocol.message_types.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.message_types.list_transactions import ListTransactionsRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from odradek.page.facts.source import Partition, Source
    from odradek.protocol.message_types.describe_producers import ProducerState
    from odradek.protocol.message_types.describe_transactions import TransactionState as DescribedTransaction

# Rows of transactional ids without a transaction.
MOST_OTHERS: Final = 500
_OPEN: Final = frozenset(STATE_NAMES[state] for state in (TransactionState.ONGOING, *PREPARED))


class TransactionPartition(NamedTuple):
    """A partition of an open transaction. ``start_offset`` is its first offset there, None if unknown.

    ``holds_back``: readers with read_committed stop at ``last_stable_offset`` because of this transaction;
    ``offsets_behind`` is how many offsets they cannot read yet.
    """

    topic: str
    partition: int
    start_offset: int | None
    last_stable_offset: int | None
    holds_back: bool
    offsets_behind: int | None


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """An open transaction. ``age_ms`` is None if it is unknown.

    A hanging one has no ``transactional_id``: no coordinator knows it, so nobody will end it. It is as old as its last
    record.
    """

    transactional_id: str | None
    state: str
    producer_id: int
    producer_epoch: int
    age_ms: int | None
    coordinator: int | None
    timeout_ms: int | None
    partitions: tuple[TransactionPartition, ...]


@dataclass(frozen=True, slots=True)
class Transactions:
    """The open transactions, the oldest first, and the other transactional ids, each with its coordinator.

    Hanging ones are those on partitions that this broker leads, and that somebody has used since its start.
    """

    open: tuple[TransactionRow, ...]
    others: tuple[tuple[int, DescribedTransaction], ...]
    more_others: int
    is_partial: bool


@dataclass(frozen=True, slots=True)
class _Logs:
    """The partitions of open transactions: producers with a transaction, last stable offsets, ends."""

    producers: dict[Partition, dict[int, ProducerState]]
    stable: dict[Partition, int]
    ends: dict[Partition, int]


async def transactions(source: Source) -> Transactions:
    """Return the transactions. Raises Unavailable, Denied."""
    user, known = await asyncio.gather(rights(source), metadata(source, None))
    described = await _described(source, [broker.node_id for broker in known.brokers])
    running = [pair for pair in described if pair[1].transaction_state in _OPEN]
    leaders = leaders_of(topic for topic in known.topics if not topic.error_code)
    in_doubt = {partition for partition in _unstable_here(source) if partition in leaders}
    named = {partition for _, each in running for partition in _partitions_in(each)}
    logs = await _logs(source, (named | in_doubt) & leaders.keys(), leaders)
    now_ms = source.broker.clock.now_ms()
    rows = [_row(node, each, logs, now_ms) for node, each in running]
    is_partial = user.has_acls and not user.sees_cluster
    # A transactional id that ACLs hide is not a hanging one.
    hanging = [] if is_partial else list(_hanging(logs, in_doubt, (each for _, each in described), now_ms))
    others = sorted((each.transactional_id, node, each) for node, each in described if each.transaction_state not in _OPEN)
    return Transactions(
        open=tuple(sorted([*rows, *hanging], key=lambda row: -(row.age_ms or 0))),
        others=tuple((node, each) for _, node, each in others[:MOST_OTHERS]),
        more_others=max(len(others) - MOST_OTHERS, 0),
        is_partial=is_partial,
    )


async def _described(source: Source, coordinators: Iterable[int]) -> list[tuple[int, DescribedTransaction]]:
    """Return each transactional id with its coordinator, as far as the user may see it."""
    listed, _ = await ask_nodes(source, LIST_TRANSACTIONS, dict.fromkeys(coordinators, ListTransactionsRequest()))
    asked = {
        node: DescribeTransactionsRequest(transactional_ids=[each.transactional_id for each in answer.transaction_states])
        for node, answer in listed.items()
        if answer.transaction_states
    }
    answers, _ = await ask_nodes(source, DESCRIBE_TRANSACTIONS, asked)
    return [(node, each) for node, answer in answers.items() for each in answer.transaction_states if not each.error_code]


def _unstable_here(source: Source) -> Iterator[Partition]:
    """Yield the partitions that this broker leads, and whose readers with read_committed are held back."""
    for partition in source.core.partitions:
        # To load the producers of thousands of idle logs would take long.
        if partition.log is not None and partition.leader is not None and partition.log.knows_producers:
            try:
                if partition.log.first_unstable_offset is not None:
                    yield partition.topic, partition.index
            except KafkaError:
                continue


async def _logs(source: Source, partitions: Iterable[Partition], leaders: Mapping[Partition, int]) -> _Logs:
    wanted = sorted(partitions)
    by_leader: dict[int, dict[str, list[int]]] = {}
    for topic, index in wanted:
        if leaders[topic, index] >= 0:
            by_leader.setdefault(leaders[topic, index], {}).setdefault(topic, []).append(index)
    requests = {
        leader: DescribeProducersRequest(
            topics=[TopicRequest(name=name, partition_indexes=rows) for name, rows in topics.items()]
        )
        for leader, topics in by_leader.items()
    }
    (answers, _), stable, ends = await asyncio.gather(
        ask_nodes(source, DESCRIBE_PRODUCERS, requests),
        list_offsets(source, dict.fromkeys(wanted, LATEST_TIMESTAMP), leaders, is_committed=True),
        list_offsets(source, dict.fromkeys(wanted, LATEST_TIMESTAMP), leaders),
    )
    producers = {
        (topic.name, one.partition_index): {
            each.producer_id: each for each in one.active_producers if each.current_txn_start_offset >= 0
        }
        for answer in answers.values()
        for topic in answer.topics
        for one in topic.partitions
        if not one.error_code
    }
    return _Logs(producers, stable, ends)


def _partitions_in(described: DescribedTransaction) -> set[Partition]:
    return {(topic.topic, index) for topic in described.topics for index in topic.partitions}


def _row(coordinator: int, described: DescribedTransaction, logs: _Logs, now_ms: int) -> TransactionRow:
    return TransactionRow(
        described.transactional_id,
        described.transaction_state,
        described.producer_id,
        described.producer_epoch,
        _age_ms(described.transaction_start_time_ms, now_ms),
        coordinator,
        described.transaction_timeout_ms,
        tuple(_partition(each, described.producer_id, logs) for each in sorted(_partitions_in(described))),
    )


def _age_ms(since_ms: int, now_ms: int) -> int | None:
    return max(now_ms - since_ms, 0) if since_ms >= 0 else None


def _partition(partition: Partition, producer_id: int, logs: _Logs) -> TransactionPartition:
    producer = logs.producers.get(partition, {}).get(producer_id)
    stable, end = logs.stable.get(partition), logs.ends.get(partition)
    start = None if producer is None else producer.current_txn_start_offset
    holds_back = start is not None and start == stable
    behind = end - stable if holds_back and end is not None and stable is not None else None
    return TransactionPartition(*partition, start, stable, holds_back, behind)


def _hanging(
    logs: _Logs, in_doubt: Iterable[Partition], described: Iterable[DescribedTransaction], now_ms: int
) -> Iterator[TransactionRow]:
    """Yield the transactions on these partitions that no coordinator has. The user must see all coordinators' ids."""
    known = {(each.producer_id, partition) for each in described for partition in _partitions_in(each)}
    for partition in sorted(in_doubt):
        for producer_id, producer in logs.producers.get(partition, {}).items():
            if (producer_id, partition) not in known:
                age_ms, rows = _age_ms(producer.last_timestamp, now_ms), (_partition(partition, producer_id, logs),)
                yield TransactionRow(None, "Hanging", producer_id, producer.producer_epoch, age_ms, None, None, rows)
