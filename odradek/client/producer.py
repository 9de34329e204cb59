"""A producer on a ``ClusterClient``: batches, partitions, idempotence and transactions.

    await producer.start()                  the producer id
    await producer.send(records)            encodes them, and writes them while the caller goes on
    await producer.flush()                  all of them are written
    await producer.end(committed=True)      in transactions

A record with a key goes to the partition that Kafka's own clients choose. Records without keys go to one partition a call, in
random order of the partitions, as Kafka's sticky partitioner does. One call's records are in flight at a time, so retries keep
their order. With acks=all the producer is idempotent: a batch that is sent again is stored once (KIP-98).
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from odradek.client.api import ClientError, RequestRefused
from odradek.client.apis import ADD_PARTITIONS_TO_TXN, END_TXN, INIT_PRODUCER_ID, PRODUCE, TRANSACTIONAL_ID
from odradek.client.cluster_client import PATIENCE_MS, ClusterClient, check, is_transient
from odradek.protocol.errors import ErrorCode
from odradek.protocol.hashing import partition_for_key
from odradek.protocol.message_types.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.message_types.end_txn import EndTxnRequest
from odradek.protocol.message_types.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.message_types.produce import PartitionProduceResponse
from odradek.protocol.produce_request import ProduceRequest
from odradek.protocol.record_batch import NO_PRODUCER_ID, NO_SEQUENCE
from odradek.protocol.records import Record, build_batch

ALL_REPLICAS: Final = -1
# Far below max.message.bytes, even with large headers.
_BATCH_BYTES: Final = 512 * 1024
_RECORD_OVERHEAD_BYTES: Final = 16
_REQUEST_TIMEOUT_MS: Final = 30_000
_SEQUENCE_MASK: Final = 0x7FFFFFFF

PartitionedRecord = tuple[int | None, Record]
"""A record and its partition; None to choose one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig:
    """The settings, under Kafka's names. ``compression`` is the codec's number."""

    acks: int = ALL_REPLICAS
    compression: int = 0
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    delivery_timeout_ms: int = PATIENCE_MS


@dataclass(slots=True)
class Written:
    """The records of a partition that are written: their number and their first and last offset, -1 with acks=0."""

    count: int = 0
    first_offset: int = -1
    last_offset: int = -1

    def add(self, count: int, base_offset: int) -> None:
        """Add a batch."""
        self.count += count
        if base_offset >= 0:
            self.first_offset = base_offset if self.first_offset < 0 else self.first_offset
            self.last_offset = base_offset + count - 1


@dataclass(slots=True)
class _Batch:
    partition: int
    count: int
    data: bytes


@dataclass(slots=True)
class _Pending:
    """The records of a partition until they are encoded."""

    records: list[Record] = field(default_factory=list)
    size_bytes: int = 0


class Producer:
    """A producer to one topic. Loop thread only. ``written`` has the records of each partition that are written."""

    def __init__(self, cluster: ClusterClient, topic: str, config: ProducerConfig) -> None:
        self._cluster = cluster
        self._topic = topic
        self._config = config
        self.written: dict[int, Written] = {}
        self._producer_id = NO_PRODUCER_ID
        self._producer_epoch = -1
        self._sequences: dict[int, int] = {}
        self._in_transaction: set[int] = set()
        self._delivery: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Get a producer id, if the producer is idempotent. Raises ClientError."""
        if self._config.acks != ALL_REPLICAS:
            return
        answer = await self._cluster.patiently(self._init_producer_id)
        self._producer_id, self._producer_epoch = answer.producer_id, answer.producer_epoch

    async def send(self, records: Iterable[PartitionedRecord]) -> None:
        """Encode the records, wait until those of the call before are written, and begin to write these.

        Raises ClientError, also for those of the call before.
        """
        batches = self._encode(records)
        await self.flush()
        if batches:
            self._delivery = asyncio.get_running_loop().create_task(self._deliver(batches))

    async def flush(self) -> None:
        """Wait until all records are written. Raises ClientError."""
        delivery, self._delivery = self._delivery, None
        if delivery is not None:
            await delivery

    async def end(self, *, committed: bool) -> None:
        """Commit or abort the transaction; the next ``send`` begins another one. Raises ClientError."""
        if committed:
            await self.flush()
        elif self._delivery is not None:
            self._delivery.cancel()
            self._delivery = None
        if self._in_transaction:
            self._in_transaction.clear()
            await self._cluster.patiently(lambda: self._end_transaction(committed=committed))

    # Encoding.

    def _encode(self, records: Iterable[PartitionedRecord]) -> list[_Batch]:
        leaders = self._cluster.leaders(self._topic)
        count = len(leaders)
        available = sorted(index for index, leader in leaders.items() if leader >= 0) or sorted(leaders)
        chosen = self._cluster.random.choice(available)
        batches: list[_Batch] = []
        pending: dict[int, _Pending] = {}
        for partition, record in records:
            if partition is None:
                partition = chosen if record.key is None else partition_for_key(record.key, count)  # noqa: PLW2901
            elif partition not in leaders:
                raise RequestRefused(f"{self._topic}-{partition}", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            batch = pending.get(partition)
            if batch is None:
                batch = pending[partition] = _Pending()
            batch.records.append(record)
            batch.size_bytes += len(record.value or b"") + len(record.key or b"") + _RECORD_OVERHEAD_BYTES
            if batch.size_bytes >= _BATCH_BYTES:
                batches.append(self._build(partition, pending.pop(partition).records))
        batches += [self._build(partition, batch.records) for partition, batch in pending.items()]
        return batches

    def _build(self, partition: int, records: Sequence[Record]) -> _Batch:
        is_idempotent = self._producer_id != NO_PRODUCER_ID
        sequence = self._sequences.get(partition, 0) if is_idempotent else NO_SEQUENCE
        data = build_batch(
            records,
            compression=self._config.compression,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=sequence,
            transactional=self._config.transactional_id is not None,
        )
        self._sequences[partition] = (sequence + len(records)) & _SEQUENCE_MASK
        return _Batch(partition, len(records), data)

    # Writing.

    async def _deliver(self, batches: list[_Batch]) -> None:
        """Write the batches, those of a partition in their order. Retry after transient errors. Raises ClientError."""
        deadline_ms = self._cluster.timer.clock.monotonic_ms() + self._config.delivery_timeout_ms
        waiting: dict[int, deque[_Batch]] = {}
        for batch in batches:
            waiting.setdefault(batch.partition, deque()).append(batch)
        if self._config.transactional_id is not None:
            await self._add_partitions(waiting)
        while waiting:
            failure = await self._write_first(waiting)
            if failure is None:
                continue
            if not is_transient(failure) or self._cluster.timer.clock.monotonic_ms() > deadline_ms:
                raise failure
            await self._cluster.back_off([self._topic])

    async def _write_first(self, waiting: dict[int, deque[_Batch]]) -> ClientError | None:
        """Write the first batch of each partition, and drop those that are written. Return a failure, if there is one."""
        try:
            by_leader = self._cluster.by_leader((self._topic, partition) for partition in waiting)
        except RequestRefused as no_leader:
            return no_leader
        answers = await asyncio.gather(
            *(self._write_to(leader, [waiting[index][0] for _, index in rows]) for leader, rows in by_leader.items()),
            return_exceptions=True,
        )
        failure: ClientError | None = None
        for answer in answers:
            if isinstance(answer, ClientError):
                failure = answer
            elif isinstance(answer, BaseException):
                raise answer
            else:
                for result in answer:
                    failure = self._settle(waiting, result) or failure
        return failure

    async def _write_to(self, leader: int, batches: list[_Batch]) -> Sequence[PartitionProduceResponse]:
        rows = [(batch.partition, batch.data) for batch in batches]
        request = ProduceRequest(self._config.transactional_id, self._config.acks, _REQUEST_TIMEOUT_MS, [(self._topic, rows)])
        answer = await self._cluster.node(leader).request(PRODUCE, request)
        if not self._config.acks:
            return [PartitionProduceResponse(index=batch.partition, base_offset=-1) for batch in batches]
        return answer.responses[0].partition_responses

    def _settle(self, waiting: dict[int, deque[_Batch]], result: PartitionProduceResponse) -> ClientError | None:
        """Drop a batch that is written. Return the failure of one that is not."""
        index = int(result.index)
        if result.error_code not in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            return RequestRefused(f"{self._topic}-{index}", result.error_code, result.error_message)
        batch = waiting[index].popleft()
        if not waiting[index]:
            del waiting[index]
        base_offset = result.base_offset if result.error_code == ErrorCode.NONE else -1
        self.written.setdefault(index, Written()).add(batch.count, base_offset)
        return None

    # The producer id and transactions.

    async def _init_producer_id(self) -> InitProducerIdResponse:
        name = self._config.transactional_id
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=self._config.transaction_timeout_ms)
        if name is None:
            answer = await self._cluster.ask(INIT_PRODUCER_ID, request)
        else:
            answer = await (await self._cluster.coordinator(name, TRANSACTIONAL_ID)).request(INIT_PRODUCER_ID, request)
        check(name or "a producer id", answer.error_code)
        return answer

    async def _add_partitions(self, partitions: Iterable[int]) -> None:
        added = [index for index in partitions if index not in self._in_transaction]
        if added:
            # Before the answer: if it is lost, the transaction is aborted with them.
            self._in_transaction.update(added)
            await self._cluster.patiently(lambda: self._add_to_transaction(added))

    async def _add_to_transaction(self, partitions: list[int]) -> None:
        name = self._config.transactional_id or ""
        topic = AddPartitionsToTxnTopic(self._topic, partitions)
        transaction = AddPartitionsToTxnTransaction(name, self._producer_id, self._producer_epoch, topics=[topic])
        node = await self._cluster.coordinator(name, TRANSACTIONAL_ID)
        answer = await node.request(ADD_PARTITIONS_TO_TXN, AddPartitionsToTxnRequest(transactions=[transaction]))
        for found in answer.results_by_transaction[0].topic_results:
            for result in found.results_by_partition:
                check(name, result.partition_error_code)

    async def _end_transaction(self, *, committed: bool) -> None:
        name = self._config.transactional_id or ""
        node = await self._cluster.coordinator(name, TRANSACTIONAL_ID)
        request = EndTxnRequest(name, self._producer_id, self._producer_epoch, committed)
        check(name, (await node.request(END_TXN, request)).error_code)
