"""A teller of kafka-python: fenced by its group membership, which it sends with the offsets (KIP-447)."""

from __future__ import annotations

import time
from typing import ClassVar

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaError
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata

from tests.campaigns.soak.bank import Placed, decode_order
from tests.campaigns.soak.teller import HEARTBEAT_INTERVAL_MS, Attempt, Teller, Told

POLL_TIMEOUT_MS = 200
FLUSH_TIMEOUT_S = 10.0
RETRY_AFTER_S = 0.05
RECONNECT = {"retry_backoff_ms": 50, "reconnect_backoff_ms": 20, "reconnect_backoff_max_ms": 200, "metrics_enabled": False}


class KafkaPythonTeller(Teller):
    make: ClassVar[str] = "kafka-python"

    def __init__(self, told: Told) -> None:
        super().__init__(told)
        # The generation of the positions, and whether partitions have been assigned since.
        self._generation = -1
        self._is_reassigned = False
        self._consumer = KafkaConsumer(
            bootstrap_servers=told.address,
            client_id=told.name,
            group_id=self.group,
            partition_assignment_strategy=[RangePartitionAssignor],
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=told.session_timeout_ms,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
            fetch_max_wait_ms=50,
            **RECONNECT,
        )
        self._producer = self._new_producer()

    def _new_producer(self) -> KafkaProducer:
        return KafkaProducer(
            bootstrap_servers=self.told.address,
            client_id=self.told.name,
            transactional_id=self.told.transactional_id,
            transaction_timeout_ms=self.told.transaction_timeout_ms,
            **RECONNECT,
        )

    def work(self) -> None:
        self._producer.init_transactions()
        self._consumer.subscribe([self.group], listener=_Reassigned(self))
        # Without metadata the first join of kafka-python 3.0 may fail.
        self._consumer.partitions_for_topic(self.group)
        while self.goes_on():
            orders = self._gather()
            if not orders:
                continue
            metadata = self._consumer.group_metadata()
            attempt = self.attempt(orders)
            # Only in the generation of the positions; without a generation the teller is no longer in the group.
            if 0 <= metadata.generation_id == self._generation and self._carry_out(attempt, metadata):
                continue
            held = self._consumer.assignment()
            for place, offset in attempt.begin.items():
                partition = TopicPartition(*place)
                if partition in held:
                    self._consumer.seek(partition, offset)
        self._consumer.close(autocommit=False)
        self._producer.close(FLUSH_TIMEOUT_S)

    def _gather(self) -> list[Placed]:
        try:
            found = self._consumer.poll(POLL_TIMEOUT_MS, max_records=self.told.orders)
            if self._is_reassigned:
                self._begin_where_the_group_is()
                return []
        except KafkaError as error:
            if not error.retriable:
                raise
            # The broker is away, and refuses at once.
            time.sleep(RETRY_AFTER_S)
            return []
        return [
            Placed(record.topic, record.partition, record.offset, decode_order(record.value))
            for records in found.values()
            for record in records
        ]

    def reassigned(self) -> None:
        """Partitions have been assigned; may be called on another thread."""
        self._is_reassigned = True

    def _begin_where_the_group_is(self) -> None:
        """Continue from the committed offsets; earlier positions are void.

        If kafka-python 3.0 gets the same partitions back, it continues from its old positions, even if it was removed from the
        group and other members have committed since.
        """
        self._is_reassigned = False
        generation = self._consumer.group_metadata().generation_id
        try:
            for partition in self._consumer.assignment():
                committed = self._consumer.committed(partition)
                if committed is None:
                    self._consumer.seek_to_beginning(partition)
                else:
                    self._consumer.seek(partition, committed)
        except KafkaError:
            self._is_reassigned = True
            raise
        self._generation = generation

    def _carry_out(self, attempt: Attempt, metadata: ConsumerGroupMetadata) -> bool:
        """Run the transaction; False where it had to be aborted."""
        producer = self._producer
        try:
            producer.begin_transaction()
            written = [
                producer.send(output.partition[0], output.value, partition=output.partition[1]) for output in attempt.outputs
            ]
            offsets = {TopicPartition(*place): OffsetAndMetadata(at, "", -1) for place, at in attempt.offsets.items()}
            producer.send_offsets_to_transaction(offsets, metadata)
            for future in written:
                future.get(FLUSH_TIMEOUT_S)
            time.sleep(attempt.pause_s)
            if attempt.is_doomed:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        except KafkaError as error:
            # If the producer is unusable, this fails as well.
            producer.abort_transaction()
            self.refused(attempt, error)
            # Otherwise kafka-python 3.0 would send the refused offsets once more, with those of its next transaction.
            producer.close(FLUSH_TIMEOUT_S)
            self._producer = self._new_producer()
            self._producer.init_transactions()
            return False
        self.ended(attempt)
        return not attempt.is_doomed


class _Reassigned(ConsumerRebalanceListener):
    """Notifies the teller, which reacts after its poll."""

    def __init__(self, teller: KafkaPythonTeller) -> None:
        self._teller = teller

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """No action: every transaction has ended before the next poll."""

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self._teller.reassigned()
