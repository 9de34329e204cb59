"""kill -9 in the middle of producing, ten times over: acknowledged records are there, in order, once per acknowledged send."""

import itertools
import random
import subprocess
import sys
import threading
import time

import pytest
from confluent_kafka import Producer

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import read_records
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log.log import Log
from odradek.storage.log.log_config import LogConfig
from tests.campaigns.crash.support import LossyProxy, read_log, rounds, seeded, until_killed
from tests.raw_client import RawClient

KILLS = 10
PARTITIONS = 3
TOPIC = "crash"
DELIVERY_TIMEOUT_S = 60.0
IDEMPOTENT = {
    "enable.idempotence": True,
    "linger.ms": 1,
    "batch.num.messages": 20,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
    "log_level": 2,
}


def create_topic(broker):
    with RawClient(broker.host, broker.port) as client:
        topic = {"name": TOPIC, "num_partitions": PARTITIONS, "replication_factor": 1}
        assert client.call(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=5000).topics[0].error_code == 0


@pytest.mark.parametrize(
    "settings", [{}, {"log.segment.bytes": 1_100_000, "log.index.interval.bytes": 1000}], ids=["", "rolling"]
)
def test_every_acknowledged_record_is_there_in_order_and_once(broker_process, settings):
    rng = seeded("produce")
    broker = broker_process(settings=settings)
    create_topic(broker)
    acknowledged = [{} for _ in range(PARTITIONS)]
    sent = kills = 0
    for _ in rounds(KILLS, lambda: sum(map(len, acknowledged))):
        kills += 1
        with RawClient(broker.host, broker.port) as client:

            def send_one(client=client):
                nonlocal sent
                sent += 1
                partition = rng.randrange(PARTITIONS)
                value = b"%d " % sent + rng.randbytes(rng.choice((10, 1000, 60_000)))
                answer = client.produce(TOPIC, value, partition=partition, compression=rng.choice((0, 4)))
                assert answer.error_code == 0
                acknowledged[partition][answer.base_offset] = value

            until_killed(broker, rng.uniform(0.001, 0.15), send_one)
        broker.start()
    assert sum(map(len, acknowledged)) > KILLS
    with RawClient(broker.host, broker.port) as client:
        for partition in range(PARTITIONS):
            values = {record.offset: record.value for record in read_log(client, TOPIC, partition)}
            assert list(values) == list(range(len(values)))
            assert {offset: values.get(offset) for offset in acknowledged[partition]} == acknowledged[partition]
            numbers = [int(value.split(b" ", 1)[0]) for value in values.values()]
            # Rising: in the order of sending, without duplicates. Records without an acknowledgement were in flight at a kill.
            assert all(earlier < later for earlier, later in itertools.pairwise(numbers))
            assert len(values) - len(acknowledged[partition]) <= kills


@pytest.fixture
def proxy():
    proxy = LossyProxy()
    yield proxy
    proxy.close()


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_an_idempotent_producer_that_lives_through_it_leaves_each_record_once(broker_process, proxy, codec):
    rng = seeded("idempotent")
    broker = proxy.broker = broker_process(settings={"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"})
    create_topic(broker)
    sent = [[] for _ in range(PARTITIONS)]
    failures = []
    stopping = threading.Event()
    producer = Producer(IDEMPOTENT | {"bootstrap.servers": f"127.0.0.1:{proxy.port}", "compression.type": codec})

    def produce():
        number = 0
        while not stopping.is_set():
            partition = number % PARTITIONS
            value = b"%d" % number
            producer.produce(TOPIC, value, partition=partition, on_delivery=lambda error, _: error and failures.append(error))
            sent[partition].append(value)
            number += 1
            producer.poll(0.001 if len(producer) < 500 else 0.05)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        for _ in range(KILLS):
            kill_between_appending_and_answering(broker, proxy, rng)
            broker.start()
    finally:
        stopping.set()
        thread.join()
    assert producer.flush(DELIVERY_TIMEOUT_S) == 0
    assert failures == []
    with RawClient(broker.host, broker.port) as client:
        for partition in range(PARTITIONS):
            assert [record.value for record in read_log(client, TOPIC, partition)] == sent[partition]


def kill_between_appending_and_answering(broker, proxy, rng):
    """When records go through again: lose the responses for some that have been appended, then kill."""
    deadline = time.monotonic() + DELIVERY_TIMEOUT_S
    with RawClient(broker.host, broker.port) as client:
        wanted = end_offset(client) + rng.randrange(1, 100)
        while end_offset(client) < wanted:
            assert time.monotonic() < deadline
        lost_before = proxy.lost_bytes
        proxy.loses_answers = True
        while proxy.lost_bytes == lost_before:
            assert time.monotonic() < deadline
            end_offset(client)
    broker.kill9()
    proxy.loses_answers = False


def end_offset(client):
    asked = {"name": TOPIC, "partitions": [{"partition_index": 0, "timestamp": -1}]}
    return client.call(ApiKey.LIST_OFFSETS, 6, replica_id=-1, topics=[asked]).topics[0].partitions[0].offset


CONFIG = LogConfig(segment_bytes=200_000)

APPENDER = """
import sys
from odradek.protocol.records import Record, build_batch
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log.log import Log
from odradek.storage.log.log_config import LogConfig

log = Log.open(
    RealFileSystem(), sys.argv[1], "t", 0, LogConfig(segment_bytes=200_000), clean=False, now_ms=1, warn=lambda *_, **__: None
)
number = log.log_end_offset
while True:
    records = [Record(timestamp=1, value=b"%d" % (number + i) + b"x" * (number % 700)) for i in range(3)]
    log.append(build_batch(records), leader_epoch=0, now_ms=1)
    number += 3
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


@pytest.mark.parametrize("seed", range(3))
def test_what_was_appended_before_a_kill_is_there_in_order_once(tmp_path, seed):
    directory = str(tmp_path / "t-0")
    acknowledged = 0
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", APPENDER, directory], stdout=subprocess.PIPE, text=True)
        for _ in range(random.Random(seed).randrange(1, 600)):
            acknowledged = int(process.stdout.readline())
        process.kill()
        rest, _ = process.communicate()
        whole_lines = rest.split("\n")[:-1]
        acknowledged = int(whole_lines[-1]) if whole_lines else acknowledged
        values = list(recovered_values(directory))
        assert len(values) >= acknowledged
        assert values == list(range(len(values)))


def recovered_values(directory):
    log = Log.open(RealFileSystem(), directory, "t", 0, CONFIG, clean=False, now_ms=1, warn=lambda *_, **__: None)
    offset = 0
    while (found := log.read(offset, 1 << 20, upper_offset=log.log_end_offset, min_one_batch=True)) is not None:
        data = found.read()
        for position, header in iter_batches(data):
            offset = header.next_offset
            yield from (int(record.value.rstrip(b"x")) for record in read_records(data, position))
    log.close(clean=False, now_ms=1)
