"""Logs are compacted while clients write and read: a real broker with small segments, its disk, and a kill in the middle."""

import time
from pathlib import Path

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.compression import LZ4
from odradek.protocol.errors import ErrorCode
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record, build_batch, read_records
from tests.raw_client import RawClient, fetch_fields

SETTINGS = {"log.cleaner.backoff.ms": 20, "log.cleaner.min.cleanable.ratio": 0.1}
SEGMENT_BYTES = 4_000
TIMEOUT_S = 15
CHECK_S = 0.02


@pytest.fixture(scope="module")
def module_broker(tmp_path_factory):
    from tests.broker_process import BrokerProcess

    with BrokerProcess(tmp_path_factory.mktemp("compaction") / "broker", settings=SETTINGS) as broker:
        yield broker


class TopicOfOne:
    """A topic of one partition."""

    def __init__(self, client, name, **configs):
        self.client = client
        self.name = name
        asked = [{"name": key, "value": str(value)} for key, value in configs.items()]
        topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": asked}
        created = client.call(ApiKey.CREATE_TOPICS, 5, topics=[topic], timeout_ms=1000).topics[0]
        assert created.error_code == ErrorCode.NONE, created.error_message

    def offset(self, timestamp):
        asked = [{"name": self.name, "partitions": [{"partition_index": 0, "timestamp": timestamp}]}]
        return self.client.call(ApiKey.LIST_OFFSETS, 5, replica_id=-1, topics=asked).topics[0].partitions[0].offset


class Topic(TopicOfOne):
    """A compacted topic; ``last`` is what was acknowledged last of each key."""

    def __init__(self, client, name, **configs):
        super().__init__(client, name, **{"internal.segment.bytes": SEGMENT_BYTES, "cleanup.policy": "compact"} | configs)
        self.last = {}
        self.turn = 0

    def put(self, pairs, *, compression=0):
        now_ms = time.time_ns() // 1_000_000
        records = [Record(timestamp=now_ms, key=key, value=value) for key, value in pairs.items()]
        answer = self.client.produce_records(self.name, build_batch(records, compression=compression))
        assert answer.error_code == ErrorCode.NONE
        self.last |= pairs

    def fill(self, batches=100, keys=20):
        for _ in range(batches):
            self.turn += 1
            names = [b"key %02d" % ((self.turn * 3 + number) % keys) for number in range(3)]
            self.put(dict.fromkeys(names, b"%d" % self.turn * 5), compression=LZ4 if self.turn % 2 else 0)

    def end_offset(self):
        return self.offset(-1)

    def read(self):
        """Every record, by way of Fetch."""
        offset, end = 0, self.end_offset()
        found = []
        while offset < end:
            answer = self.client.call(ApiKey.FETCH, 12, **fetch_fields(self.name, offset)).responses[0].partitions[0]
            assert answer.error_code == ErrorCode.NONE
            for position, header in iter_batches(answer.records):
                found += [record for record in read_records(answer.records, position) if record.offset >= offset]
                offset = max(offset, header.next_offset)
        assert [record.offset for record in found] == sorted({record.offset for record in found})
        return found

    def assert_compacted(self, keys=20, *, left=1.0):
        """What is left is what was said last, and little else: what the active segment and the last round have."""
        records = await_value(self.read, lambda records: len(records) <= keys + left * SEGMENT_BYTES / 30)
        assert {record.key: record.value for record in records} == self.last


def await_value(ask, is_right):
    deadline = time.monotonic() + TIMEOUT_S
    while not is_right(value := ask()):
        assert time.monotonic() < deadline, f"still {value}"
        time.sleep(CHECK_S)
    return value


def test_a_compacted_topic_keeps_the_last_record_of_each_key_and_all_offsets(client, new_name):
    topic = Topic(client, new_name())
    topic.fill(300)
    topic.assert_compacted()
    assert topic.end_offset() == 900


def test_a_record_without_a_key_is_refused(client, new_name):
    topic = Topic(client, new_name())
    answer = client.produce(topic.name, b"no key")
    assert answer.error_code == ErrorCode.INVALID_RECORD


def test_who_reads_while_the_log_is_compacted_sees_offsets_rise_and_misses_nothing_that_is_the_last(client, new_name):
    topic = Topic(client, new_name())
    for _ in range(25):
        topic.fill(20)
        assert {record.key: record.value for record in topic.read()} == topic.last


def test_what_is_both_compacted_and_deleted_from_loses_old_segments_too(broker_process):
    broker = broker_process(settings=SETTINGS | {"log.retention.check.interval.ms": 50, "log.initial.task.delay.ms": 50})
    with RawClient(broker.host, broker.port) as client:
        configs = {"cleanup.policy": "compact,delete", "retention.bytes": 3 * SEGMENT_BYTES, "file.delete.delay.ms": 0}
        topic = Topic(client, "t", **configs)
        for number in range(600):
            topic.put({b"key %d" % number: b"x" * 50})
        await_value(lambda: topic.offset(-2), lambda offset: offset > 400)


@pytest.mark.parametrize("delay_s", [0.0, 0.02, 0.05, 0.1])
def test_a_kill_while_a_log_is_compacted_loses_nothing(broker_process, delay_s):
    broker = broker_process(settings=SETTINGS)
    with RawClient(broker.host, broker.port) as client:
        topic = Topic(client, "t")
        topic.fill(400)
        time.sleep(delay_s)
    broker.kill9()
    broker.start()
    with RawClient(broker.host, broker.port) as client:
        topic.client = client
        assert topic.end_offset() == 1200
        assert {record.key: record.value for record in topic.read()} == topic.last
        topic.fill(50)
        topic.assert_compacted()
    assert "offline" not in broker.stderr
    assert broker.stop() == 0
    files = [path.name for path in (broker.data_dir / "t-0").iterdir()]
    assert not [name for name in files if name.endswith((".cleaned", ".swap"))]
    checkpoint = (broker.data_dir / "cleaner-offset-checkpoint").read_text().splitlines()
    assert checkpoint[:2] == ["0", "1"]
    assert checkpoint[2].startswith("t 0 ")


def children_of(pid):
    """The running processes that ``pid`` has started, as (pid, start time): a pid alone may soon be another's."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent, *fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(parent) == pid and state != "Z":
                found.add((int(entry.name), fields[17]))
    return found


def is_running(pid, started):
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return state != "Z" and fields[18] == started


@pytest.fixture
def compacting(broker_process):
    """A broker whose cleaner has its process at work, for longer than a test takes; and that process."""
    broker = broker_process(settings=SETTINGS | {"log.cleaner.io.max.bytes.per.second": 10_000})
    with RawClient(broker.host, broker.port) as client:
        Topic(client, "t").fill(800)
    partition = broker.data_dir / "t-0"
    await_value(lambda: list(partition.glob("*.cleaned")), bool)
    [child] = children_of(broker.pid)
    assert is_running(*child)
    return broker, child


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_the_process_that_compacts_is_gone_when_its_broker_was_killed(compacting):
    broker, child = compacting
    broker.kill9()
    await_value(lambda: is_running(*child), lambda runs: not runs)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_a_stop_ends_the_process_that_compacts_and_leaves_nothing_of_its_work(compacting):
    broker, child = compacting
    assert broker.stop() == 0
    assert not is_running(*child)
    assert not [path for path in (broker.data_dir / "t-0").iterdir() if path.suffix in {".cleaned", ".swap"}]
