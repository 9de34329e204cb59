"""A real broker over several directories: placement, a directory that fails, partitions that move while they are written."""

import time
from pathlib import Path
from threading import Thread

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.record_batch import LOG_OVERHEAD
from odradek.protocol.records import Record, build_batch, read_records
from tests.broker_process import BrokerProcess
from tests.raw_client import RawClient, fetch_fields


@pytest.fixture
def disks(tmp_path):
    return [tmp_path / name for name in ("a", "b", "c")]


@pytest.fixture
def broker(tmp_path, disks):
    broker = BrokerProcess(tmp_path / "broker", log_dirs=disks, settings={"log.segment.delete.delay.ms": 0})
    yield broker.start()
    if broker.running:
        broker.kill9()


def create(client, name, partitions, **configs):
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": 1,
        "assignments": (),
        "configs": [{"name": key.replace("_", "."), "value": str(value)} for key, value in configs.items()],
    }
    (created,) = client.call(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=1000, validate_only=False).topics
    assert created.error_code == ErrorCode.NONE


def described(client):
    """By the directory's name: its error code, or its partitions as (topic, partition) -> whether they are future ones."""
    found = {}
    for result in client.call(ApiKey.DESCRIBE_LOG_DIRS, 4, topics=None).results:
        partitions = {
            (topic.name, partition.partition_index): partition.is_future_key
            for topic in result.topics
            for partition in topic.partitions
        }
        found[Path(result.log_dir).name] = result.error_code or partitions
    return found


def move(client, path, topic, *partitions):
    dirs = [{"path": str(path), "topics": [{"name": topic, "partitions": partitions}]}]
    (result,) = client.call(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, dirs=dirs).results
    return [partition.error_code for partition in result.partitions]


def values(client, topic, partition=0):
    found = []
    offset = 0
    while True:
        answer = client.call(ApiKey.FETCH, 12, **fetch_fields(topic, offset, partition=partition, max_wait_ms=0))
        (fetched,) = answer.responses[0].partitions
        assert fetched.error_code == ErrorCode.NONE
        data = bytes(fetched.records or b"")
        if not data:
            return found
        position = 0
        while position < len(data):
            records = list(read_records(data, position))
            found += [record.value or b"" for record in records]
            offset += len(records)
            position += LOG_OVERHEAD + int.from_bytes(data[position + 8 : position + 12], "big")


def roll(client, partition, topic="t"):
    """Produce a record that needs a new segment, ``segment.ms`` being 1; the error code."""
    records = build_batch([Record(value=b"v", timestamp=1_700_000_001_000)])
    return client.produce_records(topic, records, partition=partition).error_code


def wait_until(condition):
    deadline_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def put_in_the_way(disk):
    """Have nothing in a directory be found or created any more, as if its disk were gone."""
    disk.rename(disk.with_name(f"{disk.name}-away"))
    disk.write_bytes(b"")


def put_back(disk):
    disk.unlink()
    disk.with_name(f"{disk.name}-away").rename(disk)


def test_partitions_are_spread_over_the_directories_and_found_again(broker):
    with RawClient(broker.host, broker.port) as client:
        create(client, "t", 4)
        for partition in range(4):
            client.produce("t", b"v", partition=partition)
        before = described(client)
    assert before == {"a": {("t", 0): False, ("t", 3): False}, "b": {("t", 1): False}, "c": {("t", 2): False}}
    assert broker.stop() == 0
    broker.start()
    with RawClient(broker.host, broker.port) as client:
        assert described(client) == before
        assert [values(client, "t", partition) for partition in range(4)] == [[b"v"]] * 4


def metadata_of(client, topic):
    (described,) = client.call(ApiKey.METADATA, 12, topics=[{"name": topic, "topic_id": None}]).topics
    return [(found.error_code, found.leader_id, list(found.offline_replicas)) for found in described.partitions]


OFFLINE, ONLINE = (ErrorCode.LEADER_NOT_AVAILABLE, -1, [1]), (ErrorCode.NONE, 1, [])


def assert_b_is_offline(client):
    assert described(client)["b"] == ErrorCode.KAFKA_STORAGE_ERROR
    assert metadata_of(client, "t") == [ONLINE, OFFLINE, ONLINE]
    assert [client.produce("t", b"w", partition=partition).error_code for partition in range(3)] == [
        ErrorCode.NONE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NONE,
    ]
    fetched = client.call(ApiKey.FETCH, 12, **fetch_fields("t", 0, partition=1, max_wait_ms=0))
    assert fetched.responses[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_directory_that_fails_under_a_broker_takes_its_partitions_offline_and_no_others(broker, disks):
    with RawClient(broker.host, broker.port) as client:
        create(client, "t", 3, segment_ms=1)
        assert client.produce("t", b"v", partition=1).error_code == ErrorCode.NONE
        put_in_the_way(disks[1])
        # It needs a new segment, which cannot be created.
        assert roll(client, 1) == ErrorCode.KAFKA_STORAGE_ERROR
        wait_until(lambda: described(client)["b"] == ErrorCode.KAFKA_STORAGE_ERROR)
        assert_b_is_offline(client)
        create(client, "u", 2)
        assert {home for home in "ac" if any(key[0] == "u" for key in described(client)[home])} == {"a", "c"}
    assert broker.stop() == 0
    put_back(disks[1])
    broker.start()
    with RawClient(broker.host, broker.port) as client:
        assert metadata_of(client, "t") == [ONLINE] * 3
        assert values(client, "t", 1) == [b"v"]


def test_a_directory_that_fails_at_the_start_takes_its_partitions_offline_and_no_others(broker, disks):
    with RawClient(broker.host, broker.port) as client:
        create(client, "t", 3)
        client.produce("t", b"v", partition=1)
    broker.stop()
    put_in_the_way(disks[1])
    broker.start()
    assert "data directory offline" in broker.stderr
    with RawClient(broker.host, broker.port) as client:
        assert_b_is_offline(client)
    broker.kill9()
    put_back(disks[1])
    broker.start()
    with RawClient(broker.host, broker.port) as client:
        assert values(client, "t", 1) == [b"v"]


@pytest.mark.parametrize("failing", [[0], [0, 1, 2]])
def test_without_the_metadata_logs_directory_the_broker_ends_with_one_line(broker, disks, failing):
    with RawClient(broker.host, broker.port) as client:
        create(client, "t", 3, segment_ms=1)
        for partition in failing:
            client.produce("t", b"v", partition=partition)
            put_in_the_way(disks[partition])
        for partition in reversed(failing):
            roll(client, partition)
    assert broker.wait_ended(20) == 1
    assert "Traceback" not in broker.stderr
    (line,) = [line for line in broker.stderr.splitlines() if line.startswith("odradek: ")]
    assert "metadata log" in line


def test_there_is_no_start_without_the_metadata_logs_directory(broker, disks):
    broker.stop()
    put_in_the_way(disks[0])
    broker.spawn()
    assert broker.wait_ended(20) == 2
    assert broker.stderr.splitlines()[-1].startswith("odradek: ")


def test_a_partition_in_two_directories_is_refused(broker, disks):
    with RawClient(broker.host, broker.port) as client:
        create(client, "t", 1)
    broker.stop()
    (disks[2] / "t-0").mkdir()
    broker.spawn()
    assert broker.wait_ended(20) == 2
    assert f"t-0 is in {disks[0]} and in {disks[2]}" in broker.stderr


def test_a_partition_moves_while_it_is_written(broker, disks):
    sent = []
    is_over = False

    def write():
        with RawClient(broker.host, broker.port) as client:
            while not is_over:
                value = b"%d" % len(sent)
                assert client.produce("t", value).error_code == ErrorCode.NONE
                sent.append(value)

    with RawClient(broker.host, broker.port) as client:
        create(client, "t", 1, segment_bytes=1048576)
        for number in range(40):
            client.produce("t", b"%06d" % number * 20_000)
        big = values(client, "t")
        writer = Thread(target=write)
        writer.start()
        for target in ("b", "c", "a"):
            count = len(sent)
            wait_until(lambda count=count: len(sent) > count)
            assert move(client, disks["abc".index(target)], "t", 0) == [ErrorCode.NONE]
            wait_until(lambda target=target: described(client)[target] == {("t", 0): False})
        is_over = True
        writer.join()
        assert values(client, "t") == big + sent
        wait_until(lambda: [path for disk in disks[1:] for path in disk.glob("t-0*")] == [])
    assert broker.stop() == 0
    assert "Traceback" not in broker.stderr


def test_a_move_that_a_kill_interrupts_is_done_after_the_next_start(broker, disks):
    with RawClient(broker.host, broker.port) as client:
        create(client, "t", 8, segment_bytes=1048576)
        for number in range(10):
            for partition in range(8):
                client.produce("t", b"%06d" % number * 20_000, partition=partition)
        before = [values(client, "t", partition) for partition in range(8)]
        assert move(client, disks[1], "t", *range(8)) == [ErrorCode.NONE] * 8
        assert any(described(client)["b"].values())
        broker.kill9()
    broker.start()
    with RawClient(broker.host, broker.port) as client:
        wait_until(lambda: described(client)["b"] == {("t", partition): False for partition in range(8)})
        assert [values(client, "t", partition) for partition in range(8)] == before


def test_a_move_is_refused_where_there_is_nothing_to_move_or_nowhere_to_go(broker, disks):
    with RawClient(broker.host, broker.port) as client:
        create(client, "t", 3, segment_ms=1)
        assert move(client, disks[0] / "x", "t", 0) == [ErrorCode.LOG_DIR_NOT_FOUND]
        assert move(client, disks[0], "t", 0, 9) == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        client.produce("t", b"v", partition=1)
        put_in_the_way(disks[1])
        roll(client, 1)
        wait_until(lambda: described(client)["b"] == ErrorCode.KAFKA_STORAGE_ERROR)
        assert move(client, disks[1], "t", 0) == [ErrorCode.KAFKA_STORAGE_ERROR]
        assert move(client, disks[2], "t", 0, 1) == [ErrorCode.KAFKA_STORAGE_ERROR] * 2


def commit(client, offset):
    partitions = [{"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1, "committed_metadata": ""}]
    (topic,) = client.call(
        ApiKey.OFFSET_COMMIT,
        8,
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[{"name": "t", "partitions": partitions}],
    ).topics
    return topic.partitions[0].error_code


def test_a_coordinator_whose_directory_fails_gives_up(broker, disks):
    broker.stop()
    broker.log_dirs = disks[:2]
    broker.settings["offsets.topic.num.partitions"] = 1
    broker.start()
    with RawClient(broker.host, broker.port) as client:
        create(client, "t", 1)
        client.call(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=["g"])
        wait_until(lambda: commit(client, 1) == ErrorCode.NONE)
        assert described(client) == {"a": {("t", 0): False}, "b": {("__consumer_offsets", 0): False}}
        create(client, "u", 2, segment_ms=1)
        assert client.produce("u", b"v", partition=1).error_code == ErrorCode.NONE
        put_in_the_way(disks[1])
        assert roll(client, 1, "u") == ErrorCode.KAFKA_STORAGE_ERROR
        wait_until(lambda: described(client)["b"] == ErrorCode.KAFKA_STORAGE_ERROR)
        assert commit(client, 2) == ErrorCode.NOT_COORDINATOR
    broker.kill9()
    put_back(disks[1])
    broker.start()
    with RawClient(broker.host, broker.port) as client:
        wait_until(lambda: commit(client, 3) == ErrorCode.NONE)
    assert broker.stop() == 0
