"""The pytest plugin, in runs of pytest of its own: what a user's project sees of it."""

import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from tests.broker_process import REPOSITORY, command_environment

PLUGIN = "odradek.testing.pytest_plugin"


@pytest.fixture
def run_pytest(tmp_path):
    """Runs pytest on a test file; its exit status and output."""

    def run(source, *arguments, ini=""):
        (tmp_path / "test_it.py").write_text(source)
        (tmp_path / "pytest.ini").write_text(f"[pytest]\nfilterwarnings = error\nasyncio_mode = auto\n{ini}")
        plugins = ["-p", PLUGIN, "-p", "pytest_asyncio.plugin", "-p", "xdist", f"--basetemp={tmp_path}/pytest"]
        command = [sys.executable, "-m", "pytest", *plugins, "--strict-markers", "--strict-config", *arguments]
        # Whether or not the entry point of this plugin is installed here.
        environment = command_environment() | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False, env=environment)
        return done.returncode, done.stdout + done.stderr

    return run


def test_pytest_finds_the_plugin_which_imports_nothing_before_it_is_used():
    entry_points = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert entry_points == {"odradek": PLUGIN}
    assert import_module(PLUGIN).kafka
    program = f"import sys, {PLUGIN}; print(sorted(name for name in sys.modules if name.startswith('odradek')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=command_environment())
    assert done.stdout == f"['odradek', 'odradek.testing', '{PLUGIN}']\n"


FIXTURES = """
import asyncio
import unittest

import pytest
from confluent_kafka import Producer

from odradek.testing import Broker

seen = set()


def write(address, topic):
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    producer.produce(topic, b"v")
    assert producer.flush(15) == 0


@pytest.mark.parametrize("number", range(3))
def test_each_test_has_a_broker(kafka, kafka_bootstrap_servers, number):
    assert kafka_bootstrap_servers == kafka.bootstrap_servers
    assert kafka.topics.keys() == {"audit"}
    assert kafka.topics["audit"].partitions == 4
    write(kafka_bootstrap_servers, "orders")
    assert kafka.topics["orders"].partitions == 2
    assert kafka.topic("orders") == "orders"


@pytest.mark.parametrize("number", range(3))
def test_each_test_has_names(kafka_session, kafka_bootstrap_servers, kafka_session_broker, number):
    assert kafka_bootstrap_servers == kafka_session.bootstrap_servers == kafka_session_broker.bootstrap_servers
    names = {kafka_session.topic("orders"), kafka_session.group("g"), kafka_session.transactional_id("tx")}
    assert len(names) == 3
    assert not names & seen
    seen.update(names)
    assert len(kafka_session.topics) == 1
    write(kafka_bootstrap_servers, kafka_session.topic("orders"))
    assert [each.text for each in kafka_session.records(kafka_session.topic("orders"))] == ["v"]


@pytest.mark.kafka(topics={"orders": 1}, configs={"num.partitions": 9})
class TestMarks:
    @pytest.mark.kafka(topics={"orders": 3})
    def test_the_nearest_mark_decides(self, kafka):
        assert kafka.topics["orders"].partitions == 3
        assert kafka.topic("other") == "other"
        assert kafka.topics["other"].partitions == 9


@pytest.mark.kafka(topics={"orders": 3})
def test_a_mark_names_topics_of_the_session_too(kafka_session):
    assert kafka_session.topics[kafka_session.topic("orders")].partitions == 3


@pytest.mark.kafka(configs={"num.partitions": 9})
@pytest.mark.xfail(raises=pytest.UsageError, strict=True)
def test_the_sessions_broker_has_no_configs_of_one_test(kafka_session):
    pass


@pytest.mark.kafka(partitions=3)
@pytest.mark.xfail(raises=pytest.UsageError, strict=True)
def test_a_mark_with_other_arguments_is_refused(kafka):
    pass


async def test_asynchronous(kafka):
    kafka.produce("orders", ["v"])
    await asyncio.to_thread(kafka.wait_for, topic="orders", records=1)


@pytest.fixture(scope="module")
def kafka_snapshot():
    with Broker(topics={"seeded": 1}) as broker:
        broker.produce("seeded", ["seed"])
        yield broker.snapshot()


@pytest.mark.kafka(topics={"other": 3}, configs={"num.partitions": 9})
@pytest.mark.parametrize("number", range(3))
def test_each_test_has_a_fork(kafka_fork, kafka_bootstrap_servers, number):
    assert kafka_bootstrap_servers == kafka_fork.bootstrap_servers
    assert (kafka_fork.topics["other"].partitions, kafka_fork.topic("new")) == (3, "new")
    assert kafka_fork.topics["new"].partitions == 9
    write(kafka_bootstrap_servers, "seeded")
    assert [each.text for each in kafka_fork.records("seeded")] == ["seed", "v"]


class Old(unittest.TestCase):
    def setUp(self):
        self.broker = self.enterContext(Broker(topics={"t": 1}))

    def test_unittest(self):
        self.assertEqual(list(self.broker.topics), ["t"])
"""


def test_the_fixtures_serve_every_kind_of_test(run_pytest):
    ini = "kafka_topics =\n    audit:4\nkafka_configs =\n    num.partitions = 7\n"
    status, output = run_pytest(FIXTURES, "--kafka-config", "num.partitions=2", ini=ini)
    assert status == 0, output
    assert "13 passed, 2 xfailed" in output


FAILING = """
import pytest


@pytest.mark.kafka(configs={"principal.builder.class": "C"}, topics={"orders": 2})
def test_fails(kafka):
    kafka.produce("orders", ["v"])
    assert kafka.records("orders")[0].text == "w"


def test_fails_with_others(kafka_session):
    kafka_session.topic("orders")
    assert 0
"""


def test_the_report_of_a_test_that_failed_in_a_worker_has_what_its_broker_holds_its_log_and_its_last_requests(run_pytest):
    status, output = run_pytest(FAILING, "-n", "1")
    assert status == 1, output
    own, shared = output.split("test_fails_with_others _")
    assert re.search(r"- Kafka broker at 127.0.0.1:\d+ -+\ntopic 'orders': offsets by partition 0: 0 to 1, 1: 0 to 0\n", own)
    assert re.search(r"- log of the Kafka broker at 127.0.0.1:\d+ -+\nwarning: principal.builder.class is ignored", own)
    last = re.search(
        r"- last requests to the Kafka broker at 127.0.0.1:\d+ -+\n(.*PRODUCE v12 .*orders.*<\d+ bytes>.* NONE, .*)\n", own
    )
    assert last is not None, output
    assert re.search(r"- Kafka broker at 127.0.0.1:\d+ -+\ntopic 'orders-\d+': ", shared)
    assert re.search(r"- last requests to the Kafka broker at 127.0.0.1:\d+ -+\n.*CREATE_TOPICS v7 .*orders-\d+", shared)
    assert "PRODUCE" not in shared
    assert "warning: principal.builder" not in shared


MISUSED = """
import pytest


@pytest.mark.kafka(configs={"num.partition": 2})
def test_a_misspelt_config(kafka):
    pass


@pytest.mark.kafka(topics=["orders"])
def test_topics_in_a_list(kafka):
    pass


def test_waits_in_vain(kafka):
    kafka.wait_for(group="g", state="Stable", within=0.05)


def test_a_rule_that_cannot_fire(kafka):
    kafka.faults.add(api="Heartbeat", topic="orders")


def test_no_such_topic(kafka):
    kafka.records("orders")
"""


def test_misuse_is_shown_at_the_line_of_the_test(run_pytest):
    status, output = run_pytest(MISUSED, "-p", "no:randomly")
    assert (status, "3 failed, 2 errors" in output) == (1, True), output
    assert "ValueError: configs: num.partition: there is no such config; did you mean num.partitions?" in output
    assert "::test_topics_in_a_list: the mark kafka: topics must be a dict of names and numbers of partitions" in output
    _, failures = output.split(" FAILURES ")
    for line, error in (
        ('kafka.wait_for(group="g", state="Stable", within=0.05)', "NotReached: waited 0.05 s for group='g'"),
        ('kafka.faults.add(api="Heartbeat", topic="orders")', "BadRule: topic: 'orders' is not allowed with Heartbeat"),
        ('kafka.records("orders")', "KafkaError: UNKNOWN_TOPIC_OR_PARTITION: there is no topic 'orders'"),
    ):
        assert re.search(rf"{re.escape('>       ' + line)}\nE       \S*{re.escape(error)}", failures), failures
    assert "odradek/testing" not in failures
    assert "concurrent/futures" not in failures


INTERRUPTED = """
import os
import signal
import threading


def test_waits(kafka, kafka_session):
    # A shell starts what runs in the background without it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    kafka.wait_for(group="other", within=60)
"""
WHAT_IS_LEFT = """
import os
import threading


def pytest_unconfigure():
    print("threads left", [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()])
    links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    print("sockets left", [os.readlink(link) for link in links if os.path.exists(link) and "socket:" in os.readlink(link)])
"""


def test_ctrl_c_leaves_no_broker(run_pytest, tmp_path):
    Path(tmp_path / "conftest.py").write_text(WHAT_IS_LEFT)
    status, output = run_pytest(INTERRUPTED)
    assert status == pytest.ExitCode.INTERRUPTED, output
    assert "threads left []" in output
    assert "sockets left []" in output


SHARED = """
import pytest
from confluent_kafka import Producer

from odradek.protocol.errors import KafkaError
from odradek.testing import NewTopic, NotReached


@pytest.mark.kafka(topics={"marked": 3})
@pytest.mark.parametrize("number", range(4))
def test_shares(kafka_session, kafka_bootstrap_servers, number):
    print("address", kafka_bootstrap_servers, "group", kafka_session.group("g"))
    orders = kafka_session.topic("orders", NewTopic(2, {"retention.ms": 86_400_000}))
    producer = Producer({"bootstrap.servers": kafka_bootstrap_servers, "linger.ms": 0})
    producer.produce(orders, b"client", partition=0)
    assert producer.flush(15) == 0
    assert kafka_session.produce(orders, [("k", {"total": 12})], partition=1)[0].json == {"total": 12}
    kafka_session.wait_for(topic=orders, records=2)
    assert [each.text for each in kafka_session.records(orders)] == ["client", '{"total": 12}']
    assert kafka_session.topics.keys() == {orders, kafka_session.topic("marked")}
    assert kafka_session.topics[orders].partitions == 2
    with pytest.raises(NotReached, match="no such group"):
        kafka_session.wait_for(group="none", within=0.01)
    with pytest.raises(KafkaError, match="there is no topic"):
        kafka_session.records("none")
    with pytest.raises(RuntimeError, match="all workers share this broker, so faults"):
        kafka_session.faults.add(api="Produce")
    with pytest.raises(RuntimeError, match="all workers share this broker"):
        kafka_session.stop()
    before = kafka_session.clock.now
    kafka_session.clock.advance(minutes=1)
    assert (kafka_session.clock.now - before).total_seconds() >= 60


def test_fails(kafka_session):
    kafka_session.topic("orders")
    assert 0
"""


def test_workers_share_a_broker_that_the_controller_runs(run_pytest):
    status, output = run_pytest(SHARED, "-n", "2", "--dist", "load", "--kafka-shared", "-rP", ini="kafka_topics =\n    audit\n")
    assert status == 1, output
    assert "1 failed, 4 passed" in output, output
    found = re.findall(r"address (\S+) group (\S+)", output)
    assert len({address for address, _ in found}) == 1
    assert len({group for _, group in found}) == len(found) == 4
    assert {group.split("-")[1] for _, group in found} == {"gw0", "gw1"}
    assert re.search(r"- Kafka broker at 127.0.0.1:\d+ -+\ntopic 'orders-gw\d-\d+': ", output)
