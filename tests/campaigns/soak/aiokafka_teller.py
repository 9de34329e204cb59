"""A teller of aiokafka, which cannot send its group membership with the offsets (KIP-447).

It is therefore fenced as before KIP-447: by a producer for each partition of orders, with a transactional id named after the
partition. The new owner of a partition initializes that id, which fences the former owner and ends its transaction. Only then
does it fetch the committed offset.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import IllegalStateError, KafkaError

from tests.campaigns.soak.bank import Placed, decode_order
from tests.campaigns.soak.teller import HEARTBEAT_INTERVAL_MS, Attempt, Teller, Told

if TYPE_CHECKING:
    from collections.abc import Iterable

POLL_TIMEOUT_MS = 200
STOP_TIMEOUT_S = 2.0
CALL_TIMEOUT_S = 15.0


class AiokafkaTeller(Teller):
    make: ClassVar[str] = "aiokafka"

    def __init__(self, told: Told) -> None:
        super().__init__(told)
        self._producers: dict[TopicPartition, AIOKafkaProducer] = {}
        self._newly_assigned: set[TopicPartition] = set()

    def work(self) -> None:
        asyncio.run(self._work())

    async def _work(self) -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.told.address,
            client_id=self.told.name,
            group_id=self.group,
            partition_assignment_strategy=[RangePartitionAssignor],
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=self.told.session_timeout_ms,
            rebalance_timeout_ms=self.told.session_timeout_ms,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
            fetch_max_wait_ms=50,
            retry_backoff_ms=50,
        )
        consumer.subscribe([self.group], listener=_Listener(self))
        await consumer.start()
        while self.goes_on():
            found = await consumer.getmany(timeout_ms=POLL_TIMEOUT_MS, max_records=self.told.orders)
            for partition, records in found.items():
                # Each may take a timeout.
                self._note_step()
                await self._serve(consumer, partition, records)
        for partition in list(self._producers):
            await self._discard(partition)
        # If the broker goes at this moment, aiokafka waits for its own cancelled task.
        with suppress(asyncio.CancelledError, TimeoutError):
            await asyncio.wait_for(consumer.stop(), STOP_TIMEOUT_S)

    async def _serve(self, consumer: AIOKafkaConsumer, partition: TopicPartition, records: list[Any]) -> None:
        """Carry out these orders, or take over the partition first, after which they are read again."""
        producer = self._producers.get(partition)
        try:
            if producer is None or partition in self._newly_assigned:
                await self._begin_with(consumer, partition)
            elif not await self._carry_out(producer, records):
                consumer.seek(partition, records[0].offset)
        except IllegalStateError:
            # Another member owns the partition by now.
            await self._discard(partition)
        except (KafkaError, TimeoutError):
            # This producer is unusable: begin again, and read these orders again if they are still due.
            await self._discard(partition)
            with suppress(IllegalStateError):
                consumer.seek(partition, records[0].offset)

    async def _begin_with(self, consumer: AIOKafkaConsumer, partition: TopicPartition) -> None:
        await self._discard(partition)
        self._newly_assigned.discard(partition)
        producer = self._producers[partition] = AIOKafkaProducer(
            bootstrap_servers=self.told.address,
            client_id=self.told.name,
            transactional_id=f"{self.group}-{partition.partition}",
            transaction_timeout_ms=self.told.transaction_timeout_ms,
            retry_backoff_ms=50,
        )
        async with asyncio.timeout(CALL_TIMEOUT_S):
            await producer.start()
            committed = await consumer.committed(partition)
        consumer.seek(partition, committed or 0)

    async def _carry_out(self, producer: AIOKafkaProducer, records: list[Any]) -> bool:
        """Run a transaction; False if it was to be aborted. Raises an error if its fate is unknown."""
        attempt = self.attempt([Placed(each.topic, each.partition, each.offset, decode_order(each.value)) for each in records])
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                await self._run(producer, attempt)
        except (KafkaError, TimeoutError) as error:
            self.refused(attempt, error)
            raise
        self.ended(attempt)
        return not attempt.is_doomed

    async def _run(self, producer: AIOKafkaProducer, attempt: Attempt) -> None:
        await producer.begin_transaction()
        written = [
            await producer.send(output.partition[0], output.value, partition=output.partition[1]) for output in attempt.outputs
        ]
        offsets = {TopicPartition(*place): at for place, at in attempt.offsets.items()}
        await producer.send_offsets_to_transaction(offsets, self.group)
        await asyncio.gather(*written)
        await asyncio.sleep(attempt.pause_s)
        if attempt.is_doomed:
            await producer.abort_transaction()
        else:
            await producer.commit_transaction()

    async def _discard(self, partition: TopicPartition) -> None:
        producer = self._producers.pop(partition, None)
        if producer is not None:
            # It waits for its transaction, which may be refused, or take as long as the broker is away.
            with suppress(KafkaError, TimeoutError):
                await asyncio.wait_for(producer.stop(), STOP_TIMEOUT_S)

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Begin again with each of these partitions before its next transaction: other members may have owned them meanwhile."""
        self._newly_assigned.update(partitions)


class _Listener(aiokafka.ConsumerRebalanceListener):
    def __init__(self, teller: AiokafkaTeller) -> None:
        self._teller = teller

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """No action: the next owner ends a transaction under way."""

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._teller.assigned(assigned)
