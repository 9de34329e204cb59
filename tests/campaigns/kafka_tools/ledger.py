"""A log directory with every kind of transaction, written by clients through a broker in a process of its own.

``ledger``, two partitions with an index entry for every batch, takes the records. Each record's value names its writer. The
transactional ids and the fates of their transactions:

    committed   librdkafka: records to both partitions, offsets of a group with a consumer; committed
    aborted     librdkafka: the same, with other offsets; aborted
    newest      a client with transaction.version 2 (KIP-890): two transactions with offsets of a group without members, the
                first committed, the second aborted; each raises the producer epoch
    idle        librdkafka: has its producer id, and no transaction
    open        librdkafka: records to partition 0 and offsets, still open when the broker stops

``modern`` is a group of the consumer protocol: a member that subscribes to a name, and one to a regular expression, that leaves.

Besides: records of an idempotent producer and of a plain one; an offset that the group's member commits outside of any
transaction, a deleted offset, and a deleted group.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.records import Record, build_batch
from tests.broker_process import BrokerProcess
from tests.raw_client import RawClient, produce_fields

TOPIC = "ledger"
GROUP = "readers"
LONE_GROUP = "without-members"
MODERN_GROUP, EXPRESSION = "modern", "^led.*"
DELETED_GROUP = "deleted"
TIMEOUT_S = 20.0
# Small enough that snapshots of the metadata are written; and members give partitions up with a heartbeat.
_SETTINGS = {
    "metadata.log.max.record.bytes.between.snapshots": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
}

# The values for read_committed: of partition 1 to its end, of partition 0 to the start of the open transaction.
COMMITTED_VALUES = {
    0: ["plain-0", "committed-0", "newest-0"],
    1: ["plain-1", "committed-1"],
}
ABORTED_VALUES = {0: ["aborted-0", "newest-1"], 1: ["aborted-1"]}
OPEN_VALUES = {0: ["open-0"], 1: []}
# (group, partition): offset
COMMITTED_OFFSETS = {(GROUP, 0): 11, (GROUP, 1): 21, (LONE_GROUP, 0): 31}
PENDING_OFFSETS = {(GROUP, 0): 19}


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """The directory and the written data."""

    path: Path

    def files(self, topic: str, *suffixes: str) -> list[Path]:
        """The files of a topic's partitions that were ever written to."""
        partitions = sorted(file.parent for file in self.path.glob(f"{topic}-*/*.log") if file.stat().st_size)
        return [file for partition in partitions for file in sorted(partition.iterdir()) if file.suffix in suffixes]


def write_ledger(directory: Path) -> LogDirectory:
    """Serve, let the clients write, and stop the broker by SIGTERM, so that it leaves snapshots behind."""
    with BrokerProcess(directory, settings=_SETTINGS) as broker:
        admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
        topic = NewTopic(TOPIC, 2, 1, config={"index.interval.bytes": "1"})
        admin.create_topics([topic])[TOPIC].result(TIMEOUT_S)
        _write_plainly(broker.address)
        reader = _join(broker.address)
        metadata = reader.consumer_group_metadata()

        committed = _begin(broker.address, "committed")
        _send(committed, {0: "committed-0", 1: "committed-1"})
        committed.send_offsets_to_transaction(_offsets({0: 11, 1: 12}), metadata, TIMEOUT_S)
        committed.commit_transaction(TIMEOUT_S)

        aborted = _begin(broker.address, "aborted")
        _send(aborted, {0: "aborted-0", 1: "aborted-1"})
        aborted.send_offsets_to_transaction(_offsets({0: 91, 1: 92}), metadata, TIMEOUT_S)
        aborted.abort_transaction(TIMEOUT_S)

        reader.commit(offsets=_offsets({1: 21}), asynchronous=False)
        with RawClient(broker.host, broker.port) as client:
            _write_as_newest(client)
            _delete_an_offset(client)
        _delete_a_group(broker.address, admin)

        _begin(broker.address, "idle")
        still_open = _begin(broker.address, "open")
        _send(still_open, {0: "open-0"})
        still_open.send_offsets_to_transaction(_offsets({0: 19}), metadata, TIMEOUT_S)
        reader.close()
        first = _join(broker.address, MODERN_GROUP, protocol="consumer")
        _join(broker.address, MODERN_GROUP, EXPRESSION, protocol="consumer", polled_with=first).close()
    return LogDirectory(directory)


def _write_plainly(address: str) -> None:
    for idempotent, partition in ((True, 0), (False, 1)):
        _send(Producer({"bootstrap.servers": address, "enable.idempotence": idempotent}), {partition: f"plain-{partition}"})


def _begin(address: str, transactional_id: str) -> Producer:
    """A producer with its transactions initialized and, except for the idle one, one begun."""
    producer = Producer({"bootstrap.servers": address, "log_level": 0, "linger.ms": 0, "transactional.id": transactional_id})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    return producer


def _send(producer: Producer, values: dict[int, str]) -> None:
    """Send a value to each partition; all are acknowledged when this returns."""
    for partition, value in values.items():
        producer.produce(TOPIC, value, partition=partition)
    assert producer.flush(TIMEOUT_S) == 0


def _offsets(offsets: dict[int, int]) -> list[TopicPartition]:
    return [TopicPartition(TOPIC, partition, offset) for partition, offset in offsets.items()]


def _join(
    address: str, group: str = GROUP, topic: str = TOPIC, *, protocol: str = "classic", polled_with: Consumer | None = None
) -> Consumer:
    """A member that has read a record; the member that has to give up a partition for it is polled meanwhile."""
    reader = Consumer(
        {
            "bootstrap.servers": address,
            "log_level": 0,
            "client.id": "reader",
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    reader.subscribe([topic])
    deadline = time.monotonic() + TIMEOUT_S
    while (message := reader.poll(0.1)) is None and time.monotonic() < deadline:
        if polled_with is not None:
            polled_with.poll(0)
    assert message is not None
    assert message.error() is None
    return reader


def _write_as_newest(client: RawClient) -> None:
    """No partition is added to a transaction beforehand; each EndTxn returns the epoch of the next one."""
    name = {"transactional_id": "newest"}
    client.call(ApiKey.FIND_COORDINATOR, 4, key_type=1, coordinator_keys=["newest"])
    begun = _accepted(client.call(ApiKey.INIT_PRODUCER_ID, 5, transaction_timeout_ms=60_000, **name))
    producer = {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
    for number, commit in enumerate((True, False)):
        batch = build_batch(
            [Record(value=b"newest-%d" % number, timestamp=1_700_000_000_000)], base_sequence=0, transactional=True, **producer
        )
        produced = client.call(ApiKey.PRODUCE, 12, **name, **produce_fields(TOPIC, batch))
        _accepted(produced.responses[0].partition_responses[0])
        at = {"partition_index": 0, "committed_offset": 31 + number, "committed_metadata": ""}
        topics = [{"name": TOPIC, "partitions": [at]}]
        answer = client.call(ApiKey.TXN_OFFSET_COMMIT, 5, group_id=LONE_GROUP, topics=topics, **name, **producer)
        _accepted(answer.topics[0].partitions[0])
        ended = _accepted(client.call(ApiKey.END_TXN, 5, committed=commit, **name, **producer))
        producer = {"producer_id": ended.producer_id, "producer_epoch": ended.producer_epoch}


def _delete_an_offset(client: RawClient) -> None:
    at = {"partition_index": 1, "committed_offset": 51, "committed_metadata": ""}
    topics = [{"name": TOPIC, "partitions": [at]}]
    _accepted(client.call(ApiKey.OFFSET_COMMIT, 8, group_id=LONE_GROUP, topics=topics).topics[0].partitions[0])
    topics = [{"name": TOPIC, "partitions": [{"partition_index": 1}]}]
    _accepted(client.call(ApiKey.OFFSET_DELETE, 0, group_id=LONE_GROUP, topics=topics))


def _delete_a_group(address: str, admin: AdminClient) -> None:
    lone = Consumer({"bootstrap.servers": address, "log_level": 0, "group.id": DELETED_GROUP})
    lone.commit(offsets=_offsets({0: 61}), asynchronous=False)
    lone.close()
    admin.delete_consumer_groups([DELETED_GROUP])[DELETED_GROUP].result(TIMEOUT_S)


def _accepted(answer: Any) -> Any:
    assert answer.error_code == 0, answer
    return answer
