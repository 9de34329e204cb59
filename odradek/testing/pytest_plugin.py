"""The fixtures that pytest finds where odradek is installed: brokers for unmodified clients.

    def test_an_order_is_billed(kafka):                         a broker of this test's own
    def test_an_order_is_billed(kafka_session):                 one for all tests, with names of this test's own
    def test_an_order_is_billed(kafka_bootstrap_servers):       the address of either, of ``kafka`` where neither is asked for

    @pytest.mark.kafka(topics={"orders": 3}, configs={"log.retention.ms": 1000})

pytest imports this module in every run, so nothing of odradek is imported here before a fixture is used. The brokers run in
threads: a fixture serves tests with any event loop, or none. In each of pytest-xdist's workers there are brokers of its own.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from odradek.testing.threaded import Broker, ThreadedBroker
    from odradek.testing.topics import NewTopic

_BROKERS = pytest.StashKey[list["ThreadedBroker"]]()
_namespaces = count(1)
_MARKER = "kafka(topics=None, configs=None): topics (names with numbers of partitions) and configs of this test's broker"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options for all brokers of a run."""
    parser.addini("kafka_configs", "Configs of the Kafka brokers of tests, each NAME=VALUE", type="linelist")
    parser.addini("kafka_topics", "Topics of the Kafka brokers of tests, each NAME or NAME:PARTITIONS", type="linelist")
    group = parser.getgroup("kafka", "Kafka brokers for tests (odradek)")
    group.addoption(
        "--kafka-config",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a config of the Kafka brokers of tests, on top of those of kafka_configs; repeatable",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The marker, for ``--strict-markers``."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Iterator[ThreadedBroker]:
    """A Kafka broker of this test's own, in memory; its address is ``kafka.bootstrap_servers``."""
    topics, configs = _marked(request.node)
    with _new_broker(request.config, topics, configs) as broker:
        _show_if_failed(request.node, broker)
        yield broker


@pytest.fixture(scope="session")
def kafka_session_broker(request: pytest.FixtureRequest) -> Iterator[ThreadedBroker]:
    """The broker behind ``kafka_session``, for fixtures that live longer than a test."""
    with _new_broker(request.config, {}, {}) as broker:
        yield broker


@pytest.fixture
def kafka_session(request: pytest.FixtureRequest, kafka_session_broker: ThreadedBroker) -> ThreadedBroker:
    """One broker for all tests that ask for it. ``kafka_session.topic("orders")`` is the name of a topic of this test's own."""
    topics, configs = _marked(request.node)
    if configs:
        raise pytest.UsageError(
            f"{request.node.nodeid}: kafka_session is shared and has no configs of one test ({', '.join(configs)}); "
            "use the fixture kafka, or kafka_configs in the ini-file"
        )
    broker = kafka_session_broker.in_namespace(f"-{next(_namespaces)}")
    for name, new in topics.items():
        broker.topic(name, new)
    _show_if_failed(request.node, broker)
    return broker


@pytest.fixture
def kafka_bootstrap_servers(request: pytest.FixtureRequest) -> str:
    """Where the clients of this test connect to: the broker of ``kafka_session`` if the test uses that, else of ``kafka``."""
    name = "kafka_session" if "kafka_session" in request.fixturenames else "kafka"
    broker: ThreadedBroker = request.getfixturevalue(name)
    return broker.bootstrap_servers


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the brokers of a failed test hold and have logged."""
    report = yield
    if report.failed:
        for broker in item.stash.get(_BROKERS, []):
            address = broker.bootstrap_servers
            report.sections.append((f"Kafka broker at {address}", broker.describe()))
            if broker.log:
                report.sections.append((f"log of the Kafka broker at {address}", "\n".join(map(str, broker.log))))
    return report


def _new_broker(config: pytest.Config, topics: dict[str, int | NewTopic], configs: dict[str, object]) -> Broker:
    from odradek.testing.threaded import Broker

    everywhere: dict[str, object] = dict(
        _pair(line) for line in (*config.getini("kafka_configs"), *config.getoption("--kafka-config"))
    )
    named: dict[str, int | NewTopic | None] = dict(_topic(line) for line in config.getini("kafka_topics"))
    return Broker(topics=named | topics, configs=everywhere | configs)


def _marked(node: pytest.Item) -> tuple[dict[str, int | NewTopic], dict[str, object]]:
    """(topics, configs) of a test's marks; the nearest one decides."""
    topics: dict[str, int | NewTopic] = {}
    configs: dict[str, object] = {}
    for mark in reversed(list(node.iter_markers("kafka"))):
        others = [*map(repr, mark.args), *(mark.kwargs.keys() - {"topics", "configs"})]
        if others:
            raise pytest.UsageError(f"{node.nodeid}: the mark kafka takes topics= and configs=, and not {', '.join(others)}")
        topics |= mark.kwargs.get("topics") or {}
        configs |= mark.kwargs.get("configs") or {}
    return topics, configs


def _show_if_failed(node: pytest.Item, broker: ThreadedBroker) -> None:
    node.stash.setdefault(_BROKERS, []).append(broker)


def _pair(line: str) -> tuple[str, str]:
    name, separator, value = line.partition("=")
    if not separator:
        raise pytest.UsageError(f"a Kafka config is NAME=VALUE, and not {line!r}")
    return name.strip(), value.strip()


def _topic(line: str) -> tuple[str, int | None]:
    name, separator, partitions = line.partition(":")
    if separator and not partitions.strip().isdecimal():
        raise pytest.UsageError(f"a line of kafka_topics is NAME or NAME:PARTITIONS, and not {line!r}")
    return name.strip(), int(partitions) if separator else None
