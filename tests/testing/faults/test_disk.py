"""Faults of the disk, and kills at named points of transactions and groups, by what unmodified clients make of them."""

import confluent_kafka
import kafka
import pytest
from kafka import errors

from odradek.testing import Broker
from odradek.testing.faults.vocabulary import BadRule, checked
from odradek.testing.listening import ListeningBroker
from tests.cases import each_case
from tests.testing.faults.librdkafka import Librdkafka

WITHIN_S = 10
TOPICS = {"orders": 1, "other": 1}


@pytest.fixture
def broker():
    with Broker(topics=TOPICS, configs={"group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker


def values(broker, topic="orders", isolation_level="read_committed"):
    return [record.value for record in broker.records(topic, isolation_level=isolation_level)]


def producer(broker, **configs):
    return kafka.KafkaProducer(**{"bootstrap_servers": broker.bootstrap_servers, "retries": 0} | configs)


def in_transaction(broker, *, is_committed=True, group=False):
    """One transaction of librdkafka's, which tries again by itself: a record, a group's offsets."""
    client = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": "billing",
            "retry.backoff.ms": 10,
            "reconnect.backoff.ms": 10,
        }
    )
    client.init_transactions(WITHIN_S)
    client.begin_transaction()
    client.produce("orders", b"paid", partition=0)
    if group:
        place = confluent_kafka.TopicPartition("other", 0, 1)
        consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "billing"})
        client.send_offsets_to_transaction([place], consumer.consumer_group_metadata(), WITHIN_S)
        consumer.close()
    if is_committed:
        client.commit_transaction(WITHIN_S)
    else:
        client.flush(WITHIN_S)
        client.abort_transaction(WITHIN_S)


@pytest.mark.parametrize(
    ("point", "moment"),
    [
        ("Empty", "before"),
        ("Ongoing", "torn"),
        ("Records", "after"),
        ("PrepareCommit", "before"),
        ("PrepareCommit", "torn"),
        ("PrepareCommit", "after"),
        ("Marker", "after"),
        ("CompleteCommit", "before"),
    ],
)
def test_a_transaction_is_committed_whole_over_a_kill_at_any_point(broker, point, moment):
    fault = broker.faults.add(point=point, restart=moment, times=1)
    in_transaction(broker)
    fault.wait()
    broker.wait_for(transactional_id="billing", state="CompleteCommit")
    assert values(broker) == [b"paid"]


@pytest.mark.parametrize("point", ["PendingOffsets", "GroupMarker"])
def test_a_groups_offsets_in_a_transaction_are_committed_over_a_kill(broker, point):
    broker.produce("other", [b"1"])
    fault = broker.faults.add(point=point, restart="after", times=1)
    in_transaction(broker, group=True)
    fault.wait()
    broker.wait_for(group="billing", lag=0)


@pytest.mark.parametrize("point", ["PrepareAbort", "CompleteAbort"])
def test_a_transaction_is_aborted_over_a_kill(broker, point):
    fault = broker.faults.add(point=point, restart="after", times=1)
    in_transaction(broker, is_committed=False)
    fault.wait()
    broker.wait_for(transactional_id="billing", state="CompleteAbort")
    assert (values(broker), values(broker, isolation_level="read_uncommitted")) == ([], [b"paid"])


def test_offsets_that_were_written_and_not_answered_are_there_after_the_kill(broker):
    broker.produce("orders", [b"1"])
    fault = broker.faults.add(point="Offsets", restart="after", times=1)
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "billing"})
    consumer.commit(offsets=[confluent_kafka.TopicPartition("orders", 0, 1)], asynchronous=False)
    consumer.close()
    assert fault.hits == 1
    broker.wait_for(group="billing", lag=0)


@pytest.mark.parametrize("code", ["ENOSPC", "EIO"])
def test_a_disk_that_takes_no_more_refuses_a_record_and_serves_after_a_start(broker, code):
    fault = broker.faults.add(disk="append", topic="orders", path="*.log", error=code, times=1)
    with producer(broker) as client:
        client.send("other", b"0").get(WITHIN_S)
        with pytest.raises(errors.KafkaStorageError):
            client.send("orders", b"1").get(WITHIN_S)
    assert fault.hits == 1
    broker.stop()
    broker.start()
    with producer(broker) as client:
        client.send("orders", b"2").get(WITHIN_S)
    assert values(broker) == [b"2"]


def test_a_slow_sync_delays_an_answer_that_waits_for_it():
    topics = {"orders": 1}
    with Broker(topics=topics, configs={"log.flush.interval.messages": 1}) as broker, producer(broker) as client:
        fault = broker.faults.add(disk="sync", topic="orders", path="*.log", delay_ms=20)
        client.send("orders", b"1").get(WITHIN_S)
        assert fault.hits >= 1
        assert fault.fired[0].api == "sync"


@pytest.mark.parametrize(("configs", "left"), [({}, []), ({"log.flush.interval.messages": 1}, [b"first"])])
def test_a_loss_of_power_leaves_what_was_synced(configs, left):
    with Broker(topics=TOPICS, configs=configs) as broker:
        client = Librdkafka(broker)
        client.send("orders", b"first")
        client.wait()
        fault = broker.faults.add(api="Produce", topic="other", power_loss="before", times=1)
        client.send("other", b"1")
        client.wait()
        assert fault.hits == 1
        assert values(broker) == left


def test_a_directory_loses_no_power(tmp_path):
    with Broker(tmp_path / "data") as broker, pytest.raises(TypeError, match="only a broker in memory can lose power"):
        broker.faults.add(power_loss="after")


def test_a_kill_in_a_directory_leaves_what_was_written(tmp_path):
    with Broker(tmp_path / "data", topics=TOPICS) as broker:
        fault = broker.faults.add(point="PrepareCommit", restart="after", times=1)
        in_transaction(broker)
        assert fault.hits == 1
        assert values(broker) == [b"paid"]


@each_case(
    ("words", "message"),
    [
        ({"point": "Prepared"}, "point: 'Prepared' is not allowed; allowed are Empty, Ongoing"),
        ({"disk": "write"}, "disk: 'write' is not allowed; allowed are append, sync"),
        (
            {"disk": "append", "error": "NOT_COORDINATOR"},
            "error: 'NOT_COORDINATOR' is not allowed; allowed are EIO, ENOSPC",
        ),
        ({"disk": "append", "api": "Produce"}, "api: .* is not allowed here; allowed with disk or point are topic"),
        ({"disk": "sync", "restart": "torn"}, "restart: 'torn' is not allowed here"),
        ({"point": "Marker", "drop": True}, "drop: True is not allowed here"),
        ({"api": "Produce", "restart": "torn"}, "restart: 'torn' is not allowed; allowed are before and after"),
        ({"path": "x"}, "path: 'x' is not allowed alone"),
    ],
)
def test_a_bad_rule_of_the_disk_is_told(words, message):
    with pytest.raises(BadRule, match=message):
        checked(words)


@pytest.mark.parametrize("operation", ["append", "sync"])
@pytest.mark.parametrize("end", ["restart", "power_loss"])
@pytest.mark.parametrize("after", range(4))
async def test_a_broker_that_is_ended_while_it_starts_is_one_broker_on_one_disk(operation, end, after):
    async with ListeningBroker(topics=TOPICS, configs={"log.flush.interval.messages": "1"}) as broker:
        fault = broker.faults.load([{"disk": operation, end: "before", "times": 1, "after": after}])[0]
        broker.restart_now()
        await broker.restarted()
        fault.remove()
        await broker.produce("orders", [b"1"])
        broker.restart_now()
        await broker.produce("orders", [b"2"])
        assert [record.value for record in await broker.records("orders")] == [b"1", b"2"]
        assert not [line for line in broker.lines if line.event == "error in the event loop"]
