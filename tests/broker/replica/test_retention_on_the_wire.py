"""Old segments go while clients look: a real broker with small segments, its disk, and a kill in the middle of it."""

import time
from itertools import pairwise

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record, build_batch, read_records
from tests.broker.replica.test_compaction_on_the_wire import TopicOfOne, await_value
from tests.raw_client import RawClient, fetch_fields

SETTINGS = {
    "log.retention.check.interval.ms": 50,
    "log.initial.task.delay.ms": 50,
    "log.flush.start.offset.checkpoint.interval.ms": 50,
}
VALUE = b"v" * 100
SEGMENT_BYTES = 400
EARLIEST, LATEST = -2, -1
TOPIC = 2
SET = 0


@pytest.fixture(scope="module")
def module_broker(tmp_path_factory):
    from tests.broker_process import BrokerProcess

    with BrokerProcess(tmp_path_factory.mktemp("retention") / "broker", settings=SETTINGS) as broker:
        yield broker


class Topic(TopicOfOne):
    """A topic of one partition whose segments hold two or three records."""

    def __init__(self, client, name, **configs):
        defaults = {"internal.segment.bytes": SEGMENT_BYTES, "retention.ms": -1, "file.delete.delay.ms": 0}
        super().__init__(client, name, **defaults | configs)

    def fill(self, count=20, *, age_ms=0):
        now_ms = time.time_ns() // 1_000_000
        for _ in range(count):
            records = build_batch([Record(timestamp=now_ms - age_ms, value=VALUE)])
            assert self.client.produce_records(self.name, records).error_code == ErrorCode.NONE

    def set(self, config, value):
        configs = [{"name": config, "config_operation": SET, "value": str(value)}]
        resource = {"resource_type": TOPIC, "resource_name": self.name, "configs": configs}
        answer = self.client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, resources=[resource])
        assert answer.responses[0].error_code == ErrorCode.NONE

    def fetch(self, offset, **fields):
        fields = fetch_fields(self.name, offset, **fields)
        return self.client.call(ApiKey.FETCH, 12, **fields).responses[0].partitions[0]

    def await_start(self, is_right):
        return await_value(lambda: self.offset(EARLIEST), is_right)

    def segments(self, broker):
        names = [path.name for path in (broker.data_dir / f"{self.name}-0").iterdir()]
        assert not [name for name in names if ".cleaned" in name]
        return sorted(int(name[:20]) for name in names if name.endswith(".log"))


def test_retention_ms_that_is_set_while_the_broker_runs_takes_old_records_and_leaves_the_log_usable(broker, client, new_name):
    topic = Topic(client, new_name())
    topic.fill(20, age_ms=60_000)
    assert topic.offset(EARLIEST) == 0
    topic.set("retention.ms", 1000)
    topic.await_start(lambda start: start == 20)
    assert topic.fetch(5).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert topic.fetch(20).log_start_offset == 20
    # What is appended late is old, too; so it is appended young.
    topic.fill(1)
    assert len(list(iter_batches(topic.fetch(20).records))) == 1


def test_files_of_old_segments_go_after_their_delay(broker, client, new_name):
    topic = Topic(client, new_name(), **{"file.delete.delay.ms": 100})
    topic.fill(20, age_ms=60_000)
    assert len(topic.segments(broker)) > 5
    topic.set("retention.ms", 1000)
    topic.await_start(lambda start: start == 20)
    directory = broker.data_dir / f"{topic.name}-0"
    await_value(lambda: [path.name for path in directory.iterdir() if path.name.endswith(".deleted")], lambda left: not left)
    assert topic.segments(broker) == [20]


def test_retention_bytes_keep_the_newest(broker, client, new_name):
    topic = Topic(client, new_name(), **{"retention.bytes": 1000})
    topic.fill(30)
    start = topic.await_start(lambda start: (30 - start) * 170 < 1000 + SEGMENT_BYTES + 170)
    assert (topic.fetch(start).error_code, topic.offset(LATEST)) == (ErrorCode.NONE, 30)


def test_delete_records_frees_the_segments_below(broker, client, new_name):
    topic = Topic(client, new_name())
    topic.fill(20)
    partitions = [{"partition_index": 0, "offset": 11}]
    answer = client.call(ApiKey.DELETE_RECORDS, 1, topics=[{"name": topic.name, "partitions": partitions}], timeout_ms=1000)
    assert answer.topics[0].partitions[0].low_watermark == 11
    await_value(lambda: topic.segments(broker), lambda bases: 5 < bases[0] <= 11 < bases[1])
    assert topic.offset(EARLIEST) == 11


def test_a_fetch_session_is_told_that_the_start_has_moved(broker, client, new_name):
    topic = Topic(client, new_name())
    topic.fill(20, age_ms=60_000)
    opened = client.call(ApiKey.FETCH, 12, **fetch_fields(topic.name, 20, session_epoch=0))
    assert opened.responses[0].partitions[0].log_start_offset == 0
    topic.set("retention.ms", 1000)
    topic.await_start(lambda start: start == 20)
    again = client.call(
        ApiKey.FETCH, 12, **fetch_fields(topic.name, 20) | {"session_id": opened.session_id, "session_epoch": 1, "topics": []}
    )
    assert again.responses[0].partitions[0].log_start_offset == 20


def test_a_fetch_that_waits_at_what_goes_is_told_so(broker, client, new_name):
    topic = Topic(client, new_name(), **{"internal.segment.bytes": 10_000})
    topic.fill(3, age_ms=60_000)
    with RawClient(broker.host, broker.port) as waiting:
        waiting.send(ApiKey.FETCH, 12, **fetch_fields(topic.name, 0, min_bytes=100_000, max_wait_ms=500))
        topic.set("retention.ms", 1000)
        topic.await_start(lambda start: start == 3)
        answer = waiting.receive(ApiKey.FETCH, 12).responses[0].partitions[0]
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_readers_get_records_in_order_or_are_out_of_range_and_never_anything_else(broker, client, new_name):
    topic = Topic(client, new_name(), **{"retention.bytes": 2 * SEGMENT_BYTES, "file.delete.delay.ms": 0})
    offset = out_of_range = 0
    for _ in range(60):
        topic.fill(4)
        answer = topic.fetch(offset)
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            out_of_range += 1
            offset = topic.offset(EARLIEST)
            continue
        assert answer.error_code == ErrorCode.NONE
        for position, _ in iter_batches(answer.records):
            for record in read_records(answer.records, position):
                assert (record.value, record.offset) == (VALUE, max(offset, record.offset))
                offset = record.offset + 1
    assert offset > 0


@pytest.mark.parametrize("delay_s", [0.0, 0.01, 0.03])
def test_a_kill_while_segments_go_leaves_a_log_that_starts_and_ends_as_it_should(broker_process, delay_s):
    settings = SETTINGS | {"log.retention.check.interval.ms": 10, "log.initial.task.delay.ms": 1}
    broker = broker_process(settings=settings)
    with RawClient(broker.host, broker.port) as client:
        topic = Topic(client, "t")
        topic.fill(200, age_ms=60_000)
        topic.fill(2)
        topic.set("retention.ms", 30_000)
        time.sleep(delay_s)
    broker.kill9()
    broker.start()
    with RawClient(broker.host, broker.port) as client:
        topic.client = client
        start = topic.await_start(lambda start: start in range(198, 201))
        assert topic.offset(LATEST) == 202
        values = []
        offset = start
        while offset < 202:
            records = topic.fetch(offset).records
            for position, header in iter_batches(records):
                values += [record.offset for record in read_records(records, position)]
                offset = header.next_offset
        assert all(after == before + 1 for before, after in pairwise(values))
        left = await_value(lambda: topic.segments(broker), lambda bases: bases[0] >= 197)
        assert left[-1] <= 202
    assert "offline" not in broker.stderr
