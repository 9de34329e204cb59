"""A process that reads one record in a consumer group and writes one of its own, with its offset, in a transaction.

    python -m tests.clients.transformer MAKE NAME ADDRESS SOURCE TARGET STEP

It says "waits" on stdout before ``STEP`` (``again``: writing a second record, ``offsets``: sending the offset, ``commit``:
committing), and goes on when there is a line on its stdin: a test may freeze it there until its partition has moved. Then it says
how it ended: "committed", or the name of the error.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import sys
from dataclasses import dataclass

# A frozen member loses its place first. The other one has its own when that wakes, however busy the machine is.
SESSION_TIMEOUT_MS = {"none": 30_000, "again": 30_000, "offsets": 10_000, "commit": 10_000}
HEARTBEAT_INTERVAL_MS = 100
# A transaction that has sent offsets keeps others from the partition until it is over; before that it may take its time.
TRANSACTION_TIMEOUT_MS = {"none": 60_000, "again": 60_000, "offsets": 60_000, "commit": 20_000}
TIMEOUT_S = 20.0
# A test gives up on a process after half a minute: before that it says on stderr what each of its threads waits for.
STUCK_AFTER_S = 25.0


@dataclass(frozen=True, slots=True)
class Told:
    """What the process is told; ``name`` is its transactional id and what it writes."""

    make: str
    name: str
    address: str
    source: str
    target: str
    step: str

    @property
    def group(self) -> str:
        return f"transformers of {self.source}"

    def wait_before(self, step: str) -> bool:
        """Wait for a line if this is the step; return True if it is."""
        if step == self.step:
            print("waits", flush=True)
            sys.stdin.readline()
        return step == self.step


def with_librdkafka(told: Told) -> str:
    from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": told.address,
            "group.id": told.group,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": SESSION_TIMEOUT_MS[told.step],
            "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": told.address,
            "transactional.id": told.name,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS[told.step],
            "linger.ms": 0,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    consumer.subscribe([told.source])
    message = consumer.poll(TIMEOUT_S)
    assert message is not None
    assert message.error() is None, message.error()
    metadata = consumer.consumer_group_metadata()
    producer.begin_transaction()
    producer.produce(told.target, told.name.encode(), partition=0)
    producer.flush(TIMEOUT_S)
    try:
        if told.wait_before("again"):
            producer.produce(told.target, told.name.encode(), partition=0)
        told.wait_before("offsets")
        producer.send_offsets_to_transaction([TopicPartition(told.source, 0, message.offset() + 1)], metadata, TIMEOUT_S)
        told.wait_before("commit")
        producer.commit_transaction(TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].txn_requires_abort():
            producer.abort_transaction(TIMEOUT_S)
        return error.args[0].name()
    return "committed"


def with_kafka_python(told: Told) -> str:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.errors import CommitFailedError, KafkaError
    from kafka.structs import OffsetAndMetadata

    consumer = KafkaConsumer(
        bootstrap_servers=told.address,
        group_id=told.group,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_TIMEOUT_MS[told.step],
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
    )
    producer = KafkaProducer(
        bootstrap_servers=told.address, transactional_id=told.name, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS[told.step]
    )
    producer.init_transactions()
    consumer.subscribe([told.source])
    consumer.partitions_for_topic(told.source)
    record = next(consumer)
    metadata = consumer.group_metadata()
    producer.begin_transaction()
    producer.send(told.target, told.name.encode(), partition=0).get(TIMEOUT_S)
    try:
        if told.wait_before("again"):
            producer.send(told.target, told.name.encode(), partition=0).get(TIMEOUT_S)
        told.wait_before("offsets")
        offsets = {TopicPartition(told.source, 0): OffsetAndMetadata(record.offset + 1, "", -1)}
        producer.send_offsets_to_transaction(offsets, metadata)
        told.wait_before("commit")
        producer.commit_transaction()
    except CommitFailedError as error:
        producer.abort_transaction()
        # It wraps what the broker said, by the name of its class.
        return str(error).rpartition(": ")[2].rstrip(".")
    except KafkaError as error:
        return type(error).__name__
    return "committed"


def with_aiokafka(told: Told) -> str:
    return asyncio.run(_with_aiokafka(told))


async def _with_aiokafka(told: Told) -> str:
    """It does not tell the broker its place in the group, so the transactional id is the partition's, not its own."""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
    from aiokafka.errors import KafkaError

    consumer = AIOKafkaConsumer(
        told.source,
        bootstrap_servers=told.address,
        group_id=told.group,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_TIMEOUT_MS[told.step],
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
    )
    producer = AIOKafkaProducer(
        bootstrap_servers=told.address,
        transactional_id=f"{told.source}-0",
        transaction_timeout_ms=TRANSACTION_TIMEOUT_MS[told.step],
    )
    async with asyncio.timeout(2 * TIMEOUT_S), consumer:
        record = await consumer.getone()
        # Who owns the partition initializes its id, which ends what others have begun, before it asks where to go on.
        await producer.start()
        partition = TopicPartition(told.source, 0)
        assert (await consumer.committed(partition) or 0) == record.offset
        try:
            await producer.begin_transaction()
            await producer.send_and_wait(told.target, told.name.encode(), partition=0)
            if await asyncio.to_thread(told.wait_before, "again"):
                await producer.send_and_wait(told.target, told.name.encode(), partition=0)
            await asyncio.to_thread(told.wait_before, "offsets")
            await producer.send_offsets_to_transaction({partition: record.offset + 1}, told.group)
            await asyncio.to_thread(told.wait_before, "commit")
            await producer.commit_transaction()
        except KafkaError as error:
            return type(error).__name__
        finally:
            await producer.stop()
    return "committed"


MAKES = {"librdkafka": with_librdkafka, "kafka-python": with_kafka_python, "aiokafka": with_aiokafka}


def main() -> None:
    """Do it, and say how it ended."""
    logging.disable()
    faulthandler.dump_traceback_later(STUCK_AFTER_S)
    told = Told(*sys.argv[1:])
    print(MAKES[told.make](told), flush=True)


if __name__ == "__main__":
    main()
