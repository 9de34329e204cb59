"""The transactions of the cluster: open ones, how old they are, and which partitions they hold back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

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


@dataclass(frozen=True, slots=True)
class TransactionPartition:
    """A partition of an open transaction. ``start_offset`` is its first offset there, None if unknown.

    ``holds_back``: readers with read_committed stop at ``last_stable_offset`` because of this transaction;
    ``offsets_behind`` is how many offsets they cannot read yet.
    """

    topic: str
    partition: int
    start_offset: int | None
    last_stable_offset: int | None
    end_offset: int | None
    holds_back: bool
    offsets_behind: int | None


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """A transactional id. ``is_open``: it has a transaction now. ``started_ms`` and ``age_ms`` are None otherwise.

    ``is_hanging``: no coordinator knows the transaction, so nobody will end it. Then it has no ``transactional_id``, and is as
    old as its last record.
    """

    transactional_id: str | None
    state: str
    is_open: bool
    is_hanging: bool
    producer_id: int
    producer_epoch: int
    coordinator: int | None
    started_ms: int | None
    age_ms: int | None
    timeout_ms: int | None
    partitions: tuple[TransactionPartition, ...]


@dataclass(frozen=True, slots=True)
class Transactions:
    """All transactional ids, open ones first, the oldest first.

    Hanging ones are those on partitions that this broker leads, and that somebody has used since its start.
    """

    now_ms: int
    open: tuple[TransactionRow, ...]
    others: tuple[TransactionRow, ...]
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
    coordinators = [broker.node_id for broker in known.brokers]
    described = await _described(source, coordinators)
    is_open = {name: each.transaction_state in _OPEN for name, (_, each) in described.items()}
    leaders = leaders_of(topic for topic in known.topics if not topic.error_code)
    in_doubt = {partition for partition in _unstable_here(source) if partition in leaders}
    named = {partition for name, (_, each) in described.items() if is_open[name] for partition in _partitions_in(each)}
    logs = await _logs(source, (named | in_doubt) & leaders.keys(), leaders)
    now_ms = source.broker.clock.now_ms()
    rows = [_row(node, each, logs, now_ms) for node, each in described.values()]
    is_partial = user.has_acls and not user.sees_cluster
    # A transactional id that ACLs hide is not a hanging one.
    hanging = [] if is_partial else list(_hanging(logs, in_doubt, (each for _, each in described.values()), now_ms))
    others = sorted((row for row in rows if not row.is_open), key=lambda row: row.transactional_id or "")
    return Transactions(
        now_ms=now_ms,
        open=tuple(sorted([*(row for row in rows if row.is_open), *hanging], key=lambda row: -(row.age_ms or 0))),
        others=tuple(others[:MOST_OTHERS]),
        more_others=max(len(others) - MOST_OTHERS, 0),
        is_partial=is_partial,
    )


async def _described(source: Source, coordinators: Iterable[int]) -> dict[str, tuple[int, DescribedTransaction]]:
    """Return each transactional id with its coordinator, as far as the user may see it."""
    listed, _ = await ask_nodes(source, LIST_TRANSACTIONS, dict.fromkeys(coordinators, ListTransactionsRequest()))
    asked = {
        node: DescribeTransactionsRequest(transactional_ids=[each.transactional_id for each in answer.transaction_states])
        for node, answer in listed.items()
        if answer.transaction_states
    }
    answers, _ = await ask_nodes(source, DESCRIBE_TRANSACTIONS, asked)
    return {
        each.transactional_id: (node, each)
        for node, answer in answers.items()
        for each in answer.transaction_states
        if not each.error_code
    }


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
        (str(topic.name), int(one.partition_index)): {
            int(each.producer_id): each for each in one.active_producers if each.current_txn_start_offset >= 0
        }
        for answer in answers.values()
        for topic in answer.topics
        for one in topic.partitions
        if not one.error_code
    }
    return _Logs(producers, stable, ends)


def _partitions_in(described: DescribedTransaction) -> set[Partition]:
    return {(str(topic.topic), int(index)) for topic in described.topics for index in topic.partitions}


def _row(coordinator: int, described: DescribedTransaction, logs: _Logs, now_ms: int) -> TransactionRow:
    is_open = described.transaction_state in _OPEN
    started_ms = described.transaction_start_time_ms if is_open and described.transaction_start_time_ms >= 0 else None
    producer_id = int(described.producer_id)
    return TransactionRow(
        transactional_id=described.transactional_id,
        state=described.transaction_state,
        is_open=is_open,
        is_hanging=False,
        producer_id=producer_id,
        producer_epoch=described.producer_epoch,
        coordinator=coordinator,
        started_ms=started_ms,
        age_ms=None if started_ms is None else max(now_ms - started_ms, 0),
        timeout_ms=described.transaction_timeout_ms,
        partitions=tuple(_partition(each, producer_id, logs) for each in sorted(_partitions_in(described))) if is_open else (),
    )


def _partition(partition: Partition, producer_id: int, logs: _Logs) -> TransactionPartition:
    producer = logs.producers.get(partition, {}).get(producer_id)
    stable, end = logs.stable.get(partition), logs.ends.get(partition)
    start = None if producer is None else int(producer.current_txn_start_offset)
    holds_back = start is not None and start == stable
    return TransactionPartition(
        topic=partition[0],
        partition=partition[1],
        start_offset=start,
        last_stable_offset=stable,
        end_offset=end,
        holds_back=holds_back,
        offsets_behind=end - stable if holds_back and end is not None and stable is not None else None,
    )


def _hanging(
    logs: _Logs, in_doubt: Iterable[Partition], described: Iterable[DescribedTransaction], now_ms: int
) -> Iterator[TransactionRow]:
    """Yield the transactions on these partitions that no coordinator has. The user must see all coordinators' ids."""
    known = {(int(each.producer_id), partition) for each in described for partition in _partitions_in(each)}
    for partition in sorted(in_doubt):
        for producer_id, producer in logs.producers.get(partition, {}).items():
            if (producer_id, partition) not in known:
                written_ms = producer.last_timestamp if producer.last_timestamp >= 0 else None
                yield TransactionRow(
                    transactional_id=None,
                    state="Hanging",
                    is_open=True,
                    is_hanging=True,
                    producer_id=producer_id,
                    producer_epoch=producer.producer_epoch,
                    coordinator=None,
                    started_ms=written_ms,
                    age_ms=None if written_ms is None else max(now_ms - written_ms, 0),
                    timeout_ms=None,
                    partitions=(_partition(partition, producer_id, logs),),
                )
