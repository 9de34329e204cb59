"""The benchmark of brokers in test suites: that it measures what it says."""

import pytest

from benchmarks.fixtures import __main__ as fixtures
from benchmarks.fixtures import suite
from benchmarks.kafka_jars import VERSION
from odradek.testing import Broker


def test_each_test_of_the_suite_is_measured(tmp_path):
    times = fixtures.run_suite("fork", 3, 1, tmp_path)
    assert len(times.each_ms) == 3
    assert 0 < sum(times.each_ms) < times.run_s * 1000


def test_a_broker_that_acknowledges_nothing_is_not_usable():
    with Broker() as broker:
        suite.wait_for_acknowledgement(broker.bootstrap_servers)
    with Broker(configs={"auto.create.topics.enable": False, "message.max.bytes": 1}) as broker:
        with pytest.raises(TimeoutError, match="no record"):
            suite.wait_for_acknowledgement(broker.bootstrap_servers, 0.05)
        broker.stop()
        with pytest.raises(TimeoutError, match="no record"):
            suite.wait_for_acknowledgement(broker.bootstrap_servers, 0.01)


def test_a_row_has_the_median_and_the_slowest():
    times = fixtures.Times([float(number) for number in range(1, 101)], 2.0)
    assert fixtures.row("kafka", times) == f"| Apache Kafka {VERSION} | 100 | 50.5 | 90.9 | 100.0 | 2.0 |"
