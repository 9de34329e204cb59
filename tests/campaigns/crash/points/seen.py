"""Observations: on disk while no broker runs, over a raw socket, and by a real read_committed consumer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, TopicPartition

from odradek.coordinator.transaction.states import TransactionState
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.control_records import ABORT, read_control_record
from odradek.protocol.coordinator_records import decode_transaction_key, decode_value
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.plain_batches import read_batch
from odradek.protocol.record_batch import BatchHeader, ensure_intact, iter_batches
from odradek.protocol.records import Record, read_records
from tests.campaigns.crash.points.producer import DEADLINE_S, Partition
from tests.campaigns.crash.points.scenario import PARTITIONS, SETTINGS
from tests.raw_client import RawClient, fetch_fields

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from odradek.protocol.coordinator_records import TransactionLogValue

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
_POLL_S = 0.01
_OFFSETS_PARTITIONS: tuple[Partition, ...] = tuple(
    ("__consumer_offsets", index) for index in range(SETTINGS["offsets.topic.num.partitions"])
)
ALL_PARTITIONS = PARTITIONS + _OFFSETS_PARTITIONS
COMMITTED = (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
DECIDED = (*COMMITTED, TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT)
_SETTLED = {"Empty", "CompleteCommit", "CompleteAbort"}


def state_on_disk(data_dir: Path, transactional_id: str) -> TransactionLogValue | None:
    """The last complete record of a transactional id in the log of a dead broker."""
    last = None
    for path in sorted(data_dir.glob("__transaction_state-*/*.log")):
        data = path.read_bytes()
        for position, header in _whole_batches(data):
            if header.is_control:
                continue
            for _, key, value in read_batch(data, position):
                decoded = decode_transaction_key(key)
                if decoded.transactional_id == transactional_id:
                    last = None if value is None else decode_value(decoded, value)
    return last


def _whole_batches(data: bytes) -> Iterator[tuple[int, BatchHeader]]:
    """The batches before the first torn one."""
    try:
        for position, header in iter_batches(data):
            ensure_intact(header, data, position)
            yield position, header
    except (KafkaError, MalformedMessage):
        return


@dataclass(frozen=True, slots=True)
class PartitionSeen:
    """One partition. ``aborted`` according to Fetch, and to the control batches: (producer id, first offset), sorted."""

    high_watermark: int
    last_stable_offset: int
    records: dict[int, Record]
    committed: list[bytes]
    aborted: list[tuple[int, int]]
    aborted_by_markers: list[tuple[int, int]]


def look_at(client: RawClient, partition: Partition) -> PartitionSeen:
    """Read a whole partition, both as read_uncommitted and as read_committed."""
    *_, last = whole = list(_read(client, partition, READ_UNCOMMITTED))
    data = b"".join(found.records for found in whole)
    committed: list[bytes] = []
    aborted: set[tuple[int, int]] = set()
    for found in _read(client, partition, READ_COMMITTED):
        told = [(each.producer_id, each.first_offset) for each in found.aborted_transactions or ()]
        committed += _committed(found.records, told)
        aborted.update(told)
    records = {
        record.offset: record
        for position, header in iter_batches(data)
        if not header.is_control
        for record in read_records(data, position)
    }
    return PartitionSeen(last.high_watermark, found.last_stable_offset, records, committed, sorted(aborted), _by_markers(data))


def _read(client: RawClient, partition: Partition, isolation_level: int) -> Iterator[Any]:
    """The Fetch responses from the beginning to the end, the last one without records."""
    topic, index = partition
    offset = 0
    while True:
        fields = fetch_fields(topic, offset, partition=index, isolation_level=isolation_level)
        found = client.call(ApiKey.FETCH, 12, **fields).responses[0].partitions[0]
        assert found.error_code == ErrorCode.NONE
        yield found
        if not found.records:
            return
        *_, (_, header) = iter_batches(found.records)
        offset = header.next_offset


def _committed(data: bytes, aborted: list[tuple[int, int]]) -> list[bytes]:
    """The values that a client delivers of the data that it received."""
    waiting = sorted(aborted, key=lambda each: each[1])
    dropped: set[int] = set()
    values = []
    for position, header in iter_batches(data):
        while waiting and waiting[0][1] <= header.last_offset:
            dropped.add(waiting.pop(0)[0])
        if header.is_control:
            dropped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in dropped):
            values += [record.value or b"" for record in read_records(data, position)]
    return values


def _by_markers(data: bytes) -> list[tuple[int, int]]:
    begun: dict[int, int] = {}
    aborted = []
    for position, header in iter_batches(data):
        if header.is_control:
            first_offset = begun.pop(header.producer_id, None)
            kind, _ = read_control_record(next(read_records(data, position)))
            if kind == ABORT and first_offset is not None:
                aborted.append((header.producer_id, first_offset))
        elif header.is_transactional:
            begun.setdefault(header.producer_id, header.base_offset)
    return sorted(aborted)


def wait_until_stable(client: RawClient) -> dict[Partition, PartitionSeen]:
    """Wait until every partition's last stable offset is its high watermark; AssertionError past the deadline."""
    deadline_s = time.monotonic() + DEADLINE_S
    while True:
        seen = {partition: look_at(client, partition) for partition in ALL_PARTITIONS}
        unstable = [partition for partition, found in seen.items() if found.last_stable_offset != found.high_watermark]
        if not unstable:
            return seen
        assert time.monotonic() < deadline_s, f"the last stable offset of {unstable} does not move"
        time.sleep(_POLL_S)


def committed_offset(client: RawClient, group_id: str, partition: Partition) -> int:
    """A group's committed offset, once no transaction has a pending one; -1 for none."""
    topic, index = partition
    groups = [{"group_id": group_id, "topics": [{"name": topic, "partition_indexes": [index]}]}]
    deadline_s = time.monotonic() + DEADLINE_S
    while True:
        (group,) = client.call(ApiKey.OFFSET_FETCH, 9, groups=groups, require_stable=True).groups
        codes = {group.error_code} | {each.error_code for topic in group.topics for each in topic.partitions}
        if codes == {ErrorCode.NONE}:
            return group.topics[0].partitions[0].committed_offset
        assert time.monotonic() < deadline_s, f"the offsets are still not to be had: {sorted(codes)}"
        time.sleep(_POLL_S)


def wait_until_settled(client: RawClient) -> None:
    """Wait until no transactional id is in a transaction or about to end one; AssertionError past the deadline."""
    deadline_s = time.monotonic() + DEADLINE_S
    while True:
        states = client.call(ApiKey.LIST_TRANSACTIONS, 1).transaction_states
        unsettled = [(each.transactional_id, each.transaction_state) for each in states if each.transaction_state not in _SETTLED]
        if not unsettled:
            return
        assert time.monotonic() < deadline_s, f"transactions do not end: {unsettled}"
        time.sleep(_POLL_S)


def ensure_nothing_hangs(client: RawClient) -> None:
    """Check that no transactional id is in a transaction, and that no partition has an open one."""
    wait_until_settled(client)
    by_topic: dict[str, list[int]] = {}
    for topic, index in ALL_PARTITIONS:
        by_topic.setdefault(topic, []).append(index)
    topics = [{"name": topic, "partition_indexes": indexes} for topic, indexes in by_topic.items()]
    hanging = [
        (topic.name, each.partition_index, producer.producer_id)
        for topic in client.call(ApiKey.DESCRIBE_PRODUCERS, 0, topics=topics).topics
        for each in topic.partitions
        for producer in each.active_producers
        if producer.current_txn_start_offset >= 0
    ]
    assert hanging == [], f"transactions hang: {hanging}"


def read_by_client(address: str) -> dict[Partition, list[bytes]]:
    """The values that librdkafka delivers from every partition with ``isolation.level=read_committed``, up to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )
    values: dict[Partition, list[bytes]] = {partition: [] for partition in PARTITIONS}
    at_end = set()
    try:
        consumer.assign([TopicPartition(topic, index, 0) for topic, index in PARTITIONS])
        while at_end != set(PARTITIONS):
            message = consumer.poll(DEADLINE_S)
            assert message is not None, f"the reader hangs: at the end of {at_end} only"
            partition = (message.topic(), message.partition())
            if message.error() is not None:
                at_end.add(partition)
            else:
                values[partition].append(message.value())
    finally:
        consumer.close()
    return values
