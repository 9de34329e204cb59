"""The broker that a test suite holds in its hand: unmodified clients use it, and nothing of it is left behind."""

import asyncio
import socket
import subprocess
import sys

import aiokafka
import confluent_kafka
import kafka
import pytest
from kafka.partitioner.default import murmur2 as murmur2_of_kafka_python

from odradek.common.config.broker_config import InvalidConfig
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.hashing import murmur2
from odradek.testing import Broker, KafkaContainer, NewTopic, NotReached
from tests.broker_process import command_environment

CLIENT_S = 15
PLAIN = "A:PLAINTEXT,B:PLAINTEXT"


def librdkafka_writes(address, topic, value):
    producer = confluent_kafka.Producer({"bootstrap.servers": address, "linger.ms": 0})
    producer.produce(topic, value)
    assert producer.flush(CLIENT_S) == 0


def librdkafka_reads(broker, topic, count, group="readers"):
    """The values that a member of a group reads and commits."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    try:
        values = [message.value() for message in consumer.consume(count, CLIENT_S)]
        consumer.commit(asynchronous=False)
        return values
    finally:
        consumer.close()


def test_clients_write_what_the_broker_shows_and_read_what_it_writes():
    with Broker(topics={"orders": 1}) as broker:
        producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        producer.send("orders", key=b"k", value=b'{"total": 12}', headers=[("h", b"1")]).get(CLIENT_S)
        producer.close()
        [record] = broker.records("orders")
        assert (record.partition, record.offset, record.key, record.json) == (0, 0, b"k", {"total": 12})
        assert (record.text, record.headers) == ('{"total": 12}', (("h", b"1"),))
        written = broker.produce("orders", [b"bytes", "text", ("key", {"total": 7}), ("key", None, {"h": "2"})])
        assert [each.offset for each in written] == [1, 2, 3, 4]
        assert written == broker.records("orders")[1:]
        expected = [b'{"total": 12}', b"bytes", b"text", b'{"total": 7}', None]
        assert librdkafka_reads(broker, "orders", 5) == expected
        assert broker.groups["readers"].offsets == {("orders", 0): 5}
        assert broker.lag("readers") == 0


def test_the_lag_of_a_group_counts_from_its_subscription_on():
    with Broker(topics={"orders": 2}) as broker:
        broker.produce("orders", [str(number) for number in range(5)])
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["orders"])
        lags = set()
        while len(lags) < 1 or consumer.poll(0.01) is None:
            group = broker.groups.get("g")
            if group is not None and group.members:
                lags.add((broker.lag("g"), group.topics))
        assert lags == {(5, ("orders",))}
        consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_of_both_protocols_are_shown(protocol):
    with Broker(topics={"orders": 2}) as broker:
        broker.produce("orders", [str(number) for number in range(5)])
        configs = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer(configs | {"group.protocol": protocol})
        consumer.subscribe(["orders"])
        assert len(consumer.consume(5, CLIENT_S)) == 5
        broker.wait_for(group="g", state="Stable", members=1)
        [member] = broker.groups["g"].members
        assert member.partitions == (("orders", 0), ("orders", 1))
        assert (broker.lag("g"), broker.groups["g"].topics) == (5, ("orders",))
        consumer.commit(asynchronous=False)
        broker.wait_for(group="g", lag=0)
        consumer.close()


def test_no_lag_is_told_of_a_group_that_has_not_begun():
    with Broker(topics={"orders": 1}) as broker:
        broker.produce("orders", ["v"])
        consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            assert consumer.poll(0.05) is None
        consumer.close()
        broker.wait_for(group="g", members=0)
        with pytest.raises(AssertionError, match="group 'g' has no lag yet: it is Empty, and has neither subscribed"):
            broker.lag("g")


@pytest.mark.asyncio(loop_factories=["asyncio", "uvloop"])
async def test_on_the_callers_loop_clients_of_that_loop_are_served():
    async with Broker(topics={"orders": 2}) as broker:
        consumer = aiokafka.AIOKafkaConsumer(
            "orders", group_id="g", auto_offset_reset="earliest", bootstrap_servers=broker.bootstrap_servers
        )
        async with asyncio.timeout(CLIENT_S), consumer:
            await broker.wait_for(group="g", state="Stable", members=1)
            # What this loop's other broker holds is not to be found here.
            async with Broker() as other:
                await other.produce("orders", ["elsewhere"])
            await broker.produce("orders", ["here", "there"])
            assert {(await consumer.getone()).value for _ in range(2)} == {b"here", b"there"}
            assert {partition for member in (await broker.groups)["g"].members for partition in member.partitions} == {
                ("orders", 0),
                ("orders", 1),
            }
        assert (await broker.topics)["orders"].end_offsets == {0: 1, 1: 1}


def test_transactions_are_shown_and_read_committed_hides_those_that_were_aborted():
    with Broker(topics={"t": 1}) as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "tx"})
        producer.init_transactions(CLIENT_S)
        for end in (producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            producer.produce("t", end.__name__)
            producer.flush(CLIENT_S)
            assert broker.transactions["tx"].state == "Ongoing"
            assert broker.transactions["tx"].partitions == (("t", 0),)
            end(CLIENT_S)
        broker.wait_for(transactional_id="tx", state="CompleteCommit")
        producer.begin_transaction()
        producer.produce("t", "open")
        producer.flush(CLIENT_S)
        assert [each.text for each in broker.records("t")] == ["abort_transaction", "commit_transaction", "open"]
        assert [each.text for each in broker.records("t", isolation_level="read_committed")] == ["commit_transaction"]


def test_what_does_not_come_is_told_with_what_was_there_instead():
    with Broker(topics={"orders": 1}) as broker:
        broker.produce("orders", ["one", "two"])
        librdkafka_reads(broker, "orders", 1)
        # A consumer that closes does not always wait for the answer to its LeaveGroup.
        broker.wait_for(group="readers", state="Empty")
        with pytest.raises(NotReached, match=r"waited 0.02 s for group='readers', state='Stable'; .*'readers': Empty.*orders-0"):
            broker.wait_for(group="readers", state="Stable", within=0.02)
        with pytest.raises(NotReached, match="no such group; groups: readers"):
            broker.wait_for(group="others", lag=0, within=0.02)
        with pytest.raises(NotReached, match="no such transactional id; transactional ids: none"):
            broker.wait_for(transactional_id="tx", state="Ongoing", within=0.02)
        with pytest.raises(NotReached, match=r"a topic with 2 records, the last one .*two"):
            broker.wait_for(topic="orders", records=3, within=0.02)
        with pytest.raises(KafkaError, match=r"there is no topic 'order'; topics: .*orders"):
            broker.records("order")
        with pytest.raises(AssertionError, match="there is no group 'reader'; groups: readers"):
            broker.lag("reader")
        with pytest.raises(TypeError, match="takes isolation_level, records, not state"):
            broker.wait_for(topic="orders", state="Stable")


async def test_waiting_does_not_hold_up_the_loop_of_the_clients_that_are_waited_for():
    with Broker(topics={"orders": 1}) as broker:
        with pytest.raises(RuntimeError, match=r"asyncio\.to_thread"):
            broker.wait_for(topic="orders")
        await asyncio.to_thread(broker.wait_for, topic="orders")


def test_a_broker_starts_again_at_its_address_on_what_its_directory_holds(tmp_path):
    with Broker(tmp_path, topics={"t": NewTopic(1, {"message.timestamp.type": "LogAppendTime"})}) as broker:
        address = broker.bootstrap_servers
        for number, end in enumerate([broker.stop, broker.kill]):
            librdkafka_writes(address, "t", str(number))
            end()
            broker.start()
        assert broker.bootstrap_servers == address
    with Broker(tmp_path) as broker:
        assert [each.text for each in broker.records("t")] == ["0", "1"]


async def test_listeners_on_free_ports_stay_on_them():
    async with Broker(
        configs={"listeners": "A://127.0.0.1:0, B://localhost:0", "listener.security.protocol.map": PLAIN}
    ) as broker:
        endpoints = broker.core.endpoints
        broker.kill()
        await broker.start()
        assert broker.core.endpoints == endpoints
        assert 0 not in {endpoint.port for endpoint in endpoints.values()}


def test_a_record_with_a_key_goes_where_kafkas_clients_put_it():
    for key in [b"", b"k", b"21", b"foobar", b"\xff" * 7, bytes(range(256))]:
        assert murmur2(key) & 0x7FFFFFFF == murmur2_of_kafka_python(key) & 0x7FFFFFFF


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"configs": {"num.partitions": "many"}}, InvalidConfig),
        ({"topics": {"orders": 1, "no name": 1}}, KafkaError),
        ({"directory": "/dev/null"}, OSError),
    ],
)
def test_a_broker_that_cannot_start_says_why(arguments, error):
    with pytest.raises(error):
        Broker(**arguments).__enter__()


def run(*arguments):
    """The exit status of Python, and its output."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False, env=command_environment())
    return done.returncode, done.stdout + done.stderr


def test_however_a_broker_ends_it_leaves_no_thread_no_socket_and_no_file(tmp_path):
    status, output = run("-m", "tests.testing.left_by_listeners", str(tmp_path))
    assert status == 0, output
    *clean, not_ended = output.splitlines()
    assert [line for line in clean if not line.endswith(" [] []")] == []
    assert len(clean) == 8
    assert "odradek broker" in not_ended
    assert "socket:" in not_ended


def test_a_broker_that_is_never_stopped_lets_the_interpreter_end():
    program = """
from odradek.testing import KafkaContainer
container = KafkaContainer().start()
container.broker.produce("t", ["v"])
print("end of the program")
"""
    assert run("-c", program) == (0, "end of the program\n")


def test_the_log_has_the_brokers_lines_and_each_broker_its_own():
    with Broker(configs={"principal.builder.class": "C", "max.connections": 0}) as broker, Broker() as other:
        with socket.create_connection(broker.bootstrap_servers.split(":")) as connection:
            assert connection.recv(1) == b""
        assert "warning: principal.builder.class is ignored" in str(broker.log[0])
        assert any("refusing a connection" in str(line) and "max.connections" in str(line) for line in broker.log)
        assert other.log == []


def test_a_suite_of_testcontainers_changes_one_import():
    with (
        KafkaContainer("confluentinc/cp-kafka:7.6.0")
        .with_kraft()
        .with_name("k")
        .with_env("KAFKA_NUM_PARTITIONS", "5")
        .with_env("KAFKA_LISTENERS", "PLAINTEXT://0.0.0.0:9093") as container
    ):
        address = f"{container.get_container_host_ip()}:{container.get_exposed_port(9093)}"
        assert container.get_bootstrap_server() == address
        librdkafka_writes(address, "t", "v")
        assert container.broker.topics["t"].partitions == 5
        with pytest.raises(NotImplementedError):
            container.exec("kafka-topics --list")
    with pytest.raises(RuntimeError):
        container.get_bootstrap_server()


def test_a_broker_that_runs_is_not_started_again_and_goes_on():
    broker = Broker()
    with broker as running:
        with pytest.raises(RuntimeError, match="is already running"):
            broker.__enter__()
        with pytest.raises(RuntimeError, match="is already running"):
            running.start()
        running.produce("t", ["v"])
    with pytest.raises(RuntimeError, match="not running"):
        running.records("t")


def test_a_description_never_fails_a_report():
    broker = Broker()
    with broker as running:
        assert running.describe() == "it is empty"
        running.produce("t", ["v"])
        librdkafka_reads(running, "t", 1)
        assert [line.partition(":")[0] for line in running.describe().splitlines()] == ["topic 't'", "group 'readers'"]
        broker.contents = None
        assert "cannot read its content: TypeError" in running.describe()
        running.kill()
        assert running.describe() == "the broker is not running"


def test_a_namespace_names_and_shows_its_own():
    with Broker() as broker:
        one, other = broker.in_namespace("-1"), broker.in_namespace("-2")
        topics = [each.topic("orders", 2) for each in (one, other)]
        one.produce(one.topic("orders"), ["v"])
        assert topics == ["orders-1", "orders-2"]
        assert list(one.topics) == ["orders-1"]
        assert broker.topics.keys() == set(topics)
        assert (one.group("g"), other.transactional_id("tx")) == ("g-1", "tx-2")
        assert other.records("orders-2") == []


def test_topics_are_refused_where_clients_may_not_make_them():
    with Broker(configs={"auto.create.topics.enable": False}) as broker:
        with pytest.raises(KafkaError) as caught:
            broker.produce("t", ["v"])
        assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_more_rows_than_a_batch_may_have_are_written_and_read():
    with Broker(topics={"t": 1}) as broker:
        rows = [b"%07d" % number + bytes(100_000) for number in range(30)]
        broker.produce("t", rows)
        assert [each.value for each in broker.records("t")] == rows
