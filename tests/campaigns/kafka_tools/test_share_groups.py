"""A share group whose broker is odradek and Apache Kafka 4.4 in turn, on one directory: each goes on with the deliveries.

After each run, Kafka's DumpLogSegments reads the states of share partitions as odradek does.
"""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, Message, Producer

from benchmarks import kafka_jars
from odradek.coordinator.share.batches import combined, updated
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.coordinator_records import ShareSnapshotValue, decode_share_state_key, decode_value
from odradek.protocol.coordinator_records.newer_groups import SHARE_STATE_KINDS, decode_newer
from odradek.protocol.plain_batches import read_batch
from odradek.protocol.record_batch import iter_batches
from tests.campaigns.growing_out.engines import KAFKA, ODRADEK, OneDirectory
from tests.campaigns.kafka_tools.dump_log_segments import dump
from tests.campaigns.kafka_tools.kafka_broker import TIMEOUT_S, until
from tests.raw_client import RawClient
from tests.share_consumers import GROUP, TOPIC, polled, set_group_configs, share_consumer

pytestmark = [pytest.mark.xdist_group("kafka-tools"), pytest.mark.timeout(240)]

SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
}
RECORDS = 40
AVAILABLE = 0


def answer(message: Message) -> AcknowledgeType:
    """Answer a record. Released are one of two the first time, one of four the second, one of eight the third."""
    if message.offset() % 2 ** message.delivery_count() == 0:
        return AcknowledgeType.RELEASE
    return AcknowledgeType.REJECT if message.offset() % 5 == 0 else AcknowledgeType.ACCEPT


def work(address: str) -> dict[int, int]:
    """Poll once, and acknowledge. Return the delivery count of each record, by its offset."""
    with share_consumer(address) as member:
        messages = polled(member)
        for message in messages:
            member.acknowledge(message, answer(message))
        assert all(error is None for error in (member.commit_sync() or {}).values())
        return {message.offset(): message.delivery_count() for message in messages}


def described(port: int) -> Any:
    """The start offset and the lag of the share partition, as the broker tells them."""
    told: list[Any] = []

    def is_told() -> bool:
        with RawClient("127.0.0.1", port) as client:
            # Kafka has just started.
            client.socket.settimeout(TIMEOUT_S)
            asked = [{"group_id": GROUP, "topics": [{"topic_name": TOPIC, "partitions": [0]}]}]
            group = client.call(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=asked).groups[0]
        told[:] = [(each.start_offset, each.lag, each.error_code) for topic in group.topics for each in topic.partitions]
        return not group.error_code and bool(told) and not told[0][2]

    until(is_told)
    return told[0][:2]


def records(data: Path) -> dict[Path, list[tuple[bytes, bytes | None]]]:
    """The keys and values in each file of the states' topic."""
    found = {}
    for path in sorted(data.glob("__share_group_state-*/*.log")):
        log = path.read_bytes()
        batches = [read_batch(log[at : at + header.size_bytes]) for at, header in iter_batches(log)]
        if batches:
            found[path] = [(key, value) for batch in batches for _, key, value in batch]
    return found


def state(data: Path) -> ShareSnapshotValue:
    """The state of the one share partition after all records."""
    [log] = records(data).values()
    now = None
    for key, value in log:
        decoded = decode_value(decode_share_state_key(key), value)
        now = combined(decoded) if isinstance(decoded, ShareSnapshotValue) else updated(now, decoded)
    assert now is not None
    return now


def available(data: Path) -> dict[int, int]:
    """The delivery counts of the records that are to be delivered again, by their offsets."""
    return {
        offset: batch.delivery_count
        for batch in state(data).state_batches
        if batch.delivery_state == AVAILABLE and batch.delivery_count
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }


def assert_kafkas_tool_reads_the_same(data: Path) -> None:
    ours = records(data)
    dumped = dump(ours, "--share-group-state-decoder")
    for path, log in ours.items():
        read = [decode_newer(key, value, SHARE_STATE_KINDS) for key, value in log]
        told = [(each.key["data"], each.payload["data"]) for each in dumped[path].records]
        assert [snake_case(key) for key, _ in told] == [each.key for each in read]
        assert [snake_case(value) for _, value in told] == [each.value for each in read]
        assert len(read) > 1


def snake_case(value: Any) -> Any:
    return json.loads(re.sub(r'(?<=[a-z])[A-Z](?=\w*":)', lambda letter: f"_{letter[0].lower()}", json.dumps(value)))


def prepare(place: OneDirectory) -> None:
    """The topic, its records in one batch, and the group's configs."""
    with RawClient("127.0.0.1", place.port) as client:
        client.call(ApiKey.CREATE_TOPICS, 7, topics=[{"name": TOPIC, "num_partitions": 1, "replication_factor": 1}])
    # Records that were delivered half as often as the limit are given out in smaller parts.
    set_group_configs(place.address, share_delivery_count_limit="10")
    producer = Producer({"bootstrap.servers": place.address, "linger.ms": 500, "log_level": 0})
    for value in range(RECORDS):
        producer.produce(TOPIC, str(value))
    assert producer.flush(30) == 0


def test_either_engine_goes_on_with_the_deliveries_of_the_other(tmp_path, monkeypatch):
    place = OneDirectory(tmp_path, SETTINGS, {})
    expected = dict.fromkeys(range(RECORDS), 0)
    before = None
    for number, engine in enumerate((ODRADEK, KAFKA, ODRADEK, KAFKA), 1):
        with monkeypatch.context() as patch:
            patch.setenv(kafka_jars.LIBS_VARIABLE, str(kafka_jars.cached("4.4.0")))
            place.start(engine)
        try:
            if before is None:
                prepare(place)
            else:
                assert described(place.port) == before
            assert work(place.address) == {offset: count + 1 for offset, count in expected.items()}
            before = described(place.port)
        finally:
            place.end(signal.SIGTERM)
        assert_kafkas_tool_reads_the_same(place.data)
        expected = available(place.data)
        assert expected == dict.fromkeys(range(0, RECORDS, 2**number), number)
