"""Each fault of a request, by what an unmodified client makes of it."""

import asyncio

import aiokafka
import confluent_kafka
import kafka
import pytest
from kafka import errors

from odradek.testing import Broker
from tests.testing.faults.librdkafka import Librdkafka

WITHIN_S = 10
TOPICS = {"orders": 2, "other": 1}


@pytest.fixture
def broker():
    with Broker(topics=TOPICS, configs={"group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker


def producer(broker, **configs):
    return kafka.KafkaProducer(**{"bootstrap_servers": broker.bootstrap_servers, "retries": 0} | configs)


def consumer(broker, *topics, **configs):
    wanted = {"bootstrap_servers": broker.bootstrap_servers, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    return kafka.KafkaConsumer(*topics, **wanted | configs)


def values(broker, topic="orders"):
    return [record.value for record in broker.records(topic)]


def test_a_produce_is_refused_with_an_error(broker):
    with broker.faults.add(api="Produce", topic="orders", error="NOT_ENOUGH_REPLICAS") as fault, producer(broker) as client:
        with pytest.raises(errors.NotEnoughReplicasError):
            client.send("orders", b"refused", partition=0).get(WITHIN_S)
        client.send("other", b"taken").get(WITHIN_S)
    assert fault.hits == 1
    assert (values(broker), values(broker, "other")) == ([], [b"taken"])


def test_one_partition_of_a_produce_is_refused_and_the_others_are_written(broker):
    broker.faults.add(api="Produce", topic="orders", partition=1, error="NOT_ENOUGH_REPLICAS")
    with producer(broker, linger_ms=200) as client:
        sent = [client.send("orders", b"%d" % partition, partition=partition) for partition in (0, 1)]
        assert sent[0].get(WITHIN_S).offset == 0
        with pytest.raises(errors.NotEnoughReplicasError):
            sent[1].get(WITHIN_S)
    assert values(broker) == [b"0"]


def test_a_client_tries_again_what_failed_twice(broker):
    fault = broker.faults.add(api="Produce", error="NOT_LEADER_OR_FOLLOWER", times=2)
    with producer(broker, retries=5, retry_backoff_ms=10) as client:
        assert client.send("orders", b"at last", partition=0).get(WITHIN_S).offset == 0
    assert fault.hits == 2


def test_librdkafka_meets_the_error_too(broker):
    told = []
    broker.faults.add(api=0, topic="orders", error=10)
    client = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    client.produce("orders", b"too large", on_delivery=lambda error, _: told.append(error.code()))
    client.flush(WITHIN_S)
    assert told == [confluent_kafka.KafkaError.MSG_SIZE_TOO_LARGE]


def test_a_commit_is_refused(broker):
    broker.produce("orders", [b"1"], partition=0)
    broker.faults.add(api="OffsetCommit", group="billing", error="REBALANCE_IN_PROGRESS", times=1)
    with consumer(broker, group_id="billing") as client:
        place = kafka.TopicPartition("orders", 0)
        client.assign([place])
        next(client)
        with pytest.raises(errors.KafkaError):
            client.commit()
        assert client.committed(place) is None
        client.commit()
        assert client.committed(place) == 1


def test_a_fetch_fails_for_one_partition_and_goes_on_when_the_rule_is_gone(broker):
    broker.produce("orders", [b"0"], partition=0)
    broker.produce("orders", [b"1"], partition=1)
    fault = broker.faults.add(api="Fetch", topic="orders", partition=1, error="NOT_LEADER_OR_FOLLOWER")
    with consumer(broker, metadata_max_age_ms=1000) as client:
        client.assign([kafka.TopicPartition("orders", 0), kafka.TopicPartition("orders", 1)])
        assert next(client).value == b"0"
        fault.wait()
        fault.remove()
        assert next(client).value == b"1"


def test_a_fetch_session_meets_the_error_of_a_partition_that_its_fetch_does_not_name(broker):
    with consumer(broker) as client:
        client.assign([kafka.TopicPartition("orders", 0)])
        client.poll(100)
        fault = broker.faults.add(api="Fetch", topic="orders", error="TOPIC_AUTHORIZATION_FAILED")
        with pytest.raises(errors.TopicAuthorizationFailedError):
            next(client)
        assert fault.hits


def test_a_topic_is_refused_in_metadata(broker):
    broker.faults.add(api="Metadata", topic="orders", error="TOPIC_AUTHORIZATION_FAILED")
    with producer(broker, max_block_ms=2000) as client, pytest.raises(errors.TopicAuthorizationFailedError):
        client.send("orders", b"never").get(WITHIN_S)


def test_a_coordinator_is_not_there_for_one_transactional_id(broker):
    broker.faults.add(api="InitProducerId", transactional_id="pay", error="TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    with producer(broker, transactional_id="other", retries=1) as client:
        client.init_transactions()
    with (
        producer(broker, transactional_id="pay", retries=1) as client,
        pytest.raises(errors.TransactionalIdAuthorizationFailedError),
    ):
        client.init_transactions()


def test_a_request_is_delayed_on_the_brokers_clock(broker):
    with producer(broker) as client:
        client.send("orders", b"first").get(WITHIN_S)
        fault = broker.faults.add(api="Produce", delay_ms=20_000, times=1)
        sent = client.send("orders", b"late")
        fault.wait()
        assert values(broker) == [b"first"]
        broker.clock.advance(seconds=20)
        sent.get(WITHIN_S)
    assert sorted(values(broker)) == [b"first", b"late"]


def test_an_answer_is_lost_and_a_client_that_tries_again_writes_once(broker):
    fault = broker.faults.add(api="Produce", drop=True, times=1)
    client = producer(broker, retries=5, enable_idempotence=True, request_timeout_ms=300, retry_backoff_ms=10)
    with client:
        client.send("orders", b"once", partition=0).get(WITHIN_S)
    assert fault.hits == 1
    assert values(broker) == [b"once"]


@pytest.mark.parametrize(("moment", "expected"), [("before", [b"1"]), ("after", [b"1", b"1"])])
def test_a_connection_closes_before_or_after_the_work(broker, moment, expected):
    fault = broker.faults.add(api="Produce", close=moment, times=1)
    with producer(broker, retries=5, enable_idempotence=False, retry_backoff_ms=10) as client:
        client.send("orders", b"1", partition=0).get(WITHIN_S)
    assert fault.hits == 1
    assert values(broker) == expected


def test_a_stalled_request_goes_on_when_the_rule_is_removed(broker):
    with producer(broker) as client:
        with broker.faults.add(api="Produce", stall=True) as fault:
            sent = client.send("orders", b"stalled")
            fault.wait()
            assert values(broker) == []
            assert not sent.is_done
        sent.get(WITHIN_S)
    assert values(broker) == [b"stalled"]


def test_a_client_is_throttled(broker):
    client = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "throttle_cb": lambda event: told.append(event.throttle_time)}
    )
    told = []
    broker.faults.add(api="Produce", throttle_ms=250, times=1)
    client.produce("orders", b"1")
    client.flush(WITHIN_S)
    while not told:
        client.poll(0.05)
    assert told == [0.25]


@pytest.mark.parametrize("cuts", [1, 7, [1, 4, 5, 11]])
async def test_answers_arrive_in_pieces(cuts):
    async with Broker(topics=TOPICS) as broker:
        await broker.produce("orders", [b"x" * 100] * 3, partition=0)
        fault = broker.faults.add(split=cuts)
        place = aiokafka.TopicPartition("orders", 0)
        async with aiokafka.AIOKafkaConsumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as client:
            client.assign([place])
            assert [(await client.getone()).offset for _ in range(3)] == [0, 1, 2]
        assert fault.hits > 3


def test_connections_are_refused(broker):
    told = []
    client = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "error_cb": lambda error: told.append(error.code()),
            "reconnect.backoff.ms": 10,
        }
    )
    with broker.faults.add(refuse=True) as fault:
        client.produce("orders", b"1", partition=0)
        while confluent_kafka.KafkaError._ALL_BROKERS_DOWN not in told:
            client.poll(0.05)
        assert fault.hits
        assert values(broker) == []
    assert client.flush(WITHIN_S) == 0
    assert values(broker) == [b"1"]


def test_a_paused_broker_answers_nobody_until_it_goes_on(broker):
    with producer(broker) as client, producer(broker) as other:
        for each in (client, other):
            each.send("other", b"before").get(WITHIN_S)
        fault = broker.faults.add(api="Produce", topic="orders", pause_ms=60_000, times=1)
        sent = client.send("orders", b"1")
        fault.wait()
        others = other.send("other", b"2")
        assert (values(broker), len(values(broker, "other"))) == ([], 2)
        broker.clock.advance(minutes=1)
        sent.get(WITHIN_S)
        others.get(WITHIN_S)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_the_broker_is_killed_and_started_again_at_a_request(broker, moment):
    client = Librdkafka(broker, enable_idempotence=True)
    client.send("other", b"first")
    client.wait()
    fault = broker.faults.add(api="Produce", topic="orders", restart=moment, times=1)
    client.send("orders", b"once")
    client.wait()
    assert fault.hits == 1
    assert values(broker) == [b"once"]


def test_the_broker_that_was_killed_keeps_its_rules_and_serves_on(broker):
    broker.faults.add(api="Produce", topic="orders", restart="after", times=2)
    client = Librdkafka(broker, enable_idempotence=True)
    for number in range(3):
        client.send("orders", b"%d" % number)
        client.wait()
    assert [fired.action for fired in broker.faults.fired] == ["restart", "restart"]
    assert values(broker) == [b"0", b"1", b"2"]


async def test_faults_on_the_callers_loop():
    async with Broker(topics=TOPICS) as broker:
        fault = broker.faults.add(api="Produce", client_id="bad", restart="before", times=1)
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, client_id="bad", enable_idempotence=True
        ) as client:
            await asyncio.wait_for(client.send_and_wait("orders", b"1", partition=0), WITHIN_S)
        await fault.wait()
        assert [record.value for record in await broker.records("orders")] == [b"1"]
