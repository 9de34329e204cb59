"""Fixtures for pytest, found wherever odradek is installed: brokers for unmodified clients.

    def test_an_order_is_billed(kafka):                         a broker of this test's own
    def test_an_order_is_billed(kafka_session):                 one for all tests, with names of this test's own
    def test_an_order_is_billed(kafka_fork):                    a fork of ``kafka_snapshot``, which conftest.py seeds
    def test_an_order_is_billed(kafka_bootstrap_servers):       the address of any; of ``kafka`` if none is used

    @pytest.mark.kafka(topics={"orders": 3}, configs={"log.retention.ms": 1000})

pytest imports this module in every run, so nothing of odradek is imported here before a fixture is used. The brokers run in
threads: a fixture serves tests with any event loop, or none. Each worker of pytest-xdist has its own brokers. With
``--kafka-shared``, all workers share the broker of ``kafka_session``, which the controller runs.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from odradek.testing.broker_thread import ThreadedTimeline
    from odradek.testing.records import NewTopic
    from odradek.testing.shared import SharedBroker
    from odradek.testing.threaded import Broker, Snapshot, ThreadedBroker

__tracebackhide__ = True

# The brokers of a test, each with a timeline of the last requests to it.
_BROKERS = pytest.StashKey[list[tuple["ThreadedBroker | SharedBroker", "ThreadedTimeline | None"]]]()
_LAST_EVENTS = 50
# Values that the controller of pytest-xdist gives its workers.
_SHARED = pytest.StashKey[tuple[tuple[str, int], str]]()
_WORKER_INPUT = "kafka_shared"
_namespaces = count(1)
_MARKER = "kafka(topics=None, configs=None): topics (names with numbers of partitions) and configs of this test's broker"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for all brokers of a run."""
    parser.addini("kafka_configs", "Configs of the Kafka brokers of tests, each NAME=VALUE", type="linelist")
    parser.addini("kafka_topics", "Topics of the Kafka brokers of tests, each NAME or NAME:PARTITIONS", type="linelist")
    group = parser.getgroup("kafka", "Kafka brokers for tests (odradek)")
    group.addoption(
        "--kafka-config",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a config for the tests' Kafka brokers, in addition to kafka_configs; repeatable",
    )
    group.addoption(
        "--kafka-shared", action="store_true", help="with pytest-xdist, all workers share one broker for kafka_session"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, for ``--strict-markers``."""
    config.addinivalue_line("markers", _MARKER)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Run the broker for all workers; called in the controller of pytest-xdist before a worker starts."""
    config: pytest.Config = node.config
    if not config.getoption("--kafka-shared"):
        return
    if _SHARED not in config.stash:
        from odradek.testing.shared import BrokerSharing  # 6.3 ms

        broker = _new_broker(config, {}, {}).__enter__()
        config.add_cleanup(broker.close)
        sharing = BrokerSharing(broker)
        config.add_cleanup(sharing.close)
        config.stash[_SHARED] = sharing.worker_input
    node.workerinput[_WORKER_INPUT] = config.stash[_SHARED]


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Iterator[ThreadedBroker]:
    """A Kafka broker of this test's own, in memory; its address is ``kafka.bootstrap_servers``."""
    topics, configs = _marked(request.node)
    with _new_broker(request.config, topics, configs) as broker:
        _show_if_failed(request.node, broker)
        yield broker


@pytest.fixture(scope="session")
def kafka_session_broker(request: pytest.FixtureRequest) -> Iterator[ThreadedBroker | SharedBroker]:
    """The broker behind ``kafka_session``, for fixtures that live longer than a test."""
    shared = _worker_input(request.config).get(_WORKER_INPUT)
    if shared is not None:
        from odradek.testing.shared import SharedBroker  # 6.3 ms

        address, key = shared
        yield SharedBroker(tuple(address), bytes.fromhex(key), "")
        return
    with _new_broker(request.config, {}, {}) as broker:
        yield broker


@pytest.fixture
def kafka_session(
    request: pytest.FixtureRequest, kafka_session_broker: ThreadedBroker | SharedBroker
) -> Iterator[ThreadedBroker | SharedBroker]:
    """One broker for all tests that ask for it. ``kafka_session.topic("orders")`` returns a topic name of this test's own."""
    topics, configs = _marked(request.node)
    if configs:
        raise pytest.UsageError(
            f"{request.node.nodeid}: kafka_session is shared, so a test cannot have its own configs ({', '.join(configs)}); "
            "use the fixture kafka, or kafka_configs in the ini-file"
        )
    given = _worker_input(request.config)
    worker = f"-{given['workerid']}" if _WORKER_INPUT in given else ""
    broker = kafka_session_broker.in_namespace(f"{worker}-{next(_namespaces)}")
    for name, new in topics.items():
        broker.topic(name, new)
    last = _show_if_failed(request.node, broker)
    yield broker
    if last is not None:
        last.stop()


@pytest.fixture(scope="session")
def kafka_snapshot(request: pytest.FixtureRequest) -> Iterator[Snapshot]:
    """The snapshot that ``kafka_fork`` starts from: a broker with the topics of ``kafka_topics``. Override it to seed more."""
    with _new_broker(request.config, {}, {}) as broker:
        snapshot = broker.snapshot()
    with snapshot:
        yield snapshot


@pytest.fixture
def kafka_fork(request: pytest.FixtureRequest, kafka_snapshot: Snapshot) -> Iterator[ThreadedBroker]:
    """A broker of this test's own that starts with the content of ``kafka_snapshot``."""
    topics, configs = _marked(request.node)
    with kafka_snapshot.fork(configs=configs) as broker:
        _show_if_failed(request.node, broker)
        for name, new in topics.items():
            broker.topic(name, new)
        yield broker


@pytest.fixture
def kafka_bootstrap_servers(request: pytest.FixtureRequest) -> str:
    """The bootstrap address for this test: of ``kafka_session`` or ``kafka_fork`` if the test uses it, otherwise of ``kafka``."""
    name = next((name for name in ("kafka_session", "kafka_fork") if name in request.fixturenames), "kafka")
    broker: ThreadedBroker | SharedBroker = request.getfixturevalue(name)
    return broker.bootstrap_servers


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the state, the log and the last requests of a failed test's brokers."""
    report = yield
    if report.failed:
        for broker, last in item.stash.get(_BROKERS, []):
            address = broker.bootstrap_servers
            report.sections.append((f"Kafka broker at {address}", broker.describe()))
            if broker.log:
                report.sections.append((f"log of the Kafka broker at {address}", "\n".join(map(str, broker.log))))
            if last:
                report.sections.append((f"last requests to the Kafka broker at {address}", str(last)))
    return report


def _new_broker(config: pytest.Config, topics: dict[str, int | NewTopic | None], configs: dict[str, object]) -> Broker:
    from odradek.testing.threaded import Broker  # 36 ms

    everywhere: dict[str, object] = dict(
        _pair(line) for line in (*config.getini("kafka_configs"), *config.getoption("--kafka-config"))
    )
    named: dict[str, int | NewTopic | None] = dict(_topic(line) for line in config.getini("kafka_topics"))
    return Broker(topics=named | topics, configs=everywhere | configs)


def _marked(node: pytest.Item) -> tuple[dict[str, int | NewTopic | None], dict[str, object]]:
    """Return (topics, configs) of a test's marks; the nearest one wins."""
    from odradek.testing.misuse import config_texts  # 30 ms
    from odradek.testing.records import checked_topics  # 30 ms

    topics: dict[str, int | NewTopic | None] = {}
    configs: dict[str, object] = {}
    for mark in reversed(list(node.iter_markers("kafka"))):
        others = [*map(repr, mark.args), *(mark.kwargs.keys() - {"topics", "configs"})]
        if others:
            raise pytest.UsageError(f"{node.nodeid}: the mark kafka takes topics= and configs=, not {', '.join(others)}")
        try:
            topics |= checked_topics(mark.kwargs.get("topics"))
            configs |= config_texts(mark.kwargs.get("configs"))
        except TypeError as error:
            raise pytest.UsageError(f"{node.nodeid}: the mark kafka: {error}") from None
    return topics, configs


def _worker_input(config: pytest.Config) -> Mapping[str, Any]:
    """Return the values that the controller of pytest-xdist gave this worker; empty outside a worker."""
    found: Mapping[str, Any] = getattr(config, "workerinput", {})
    return found


def _show_if_failed(node: pytest.Item, broker: ThreadedBroker | SharedBroker) -> ThreadedTimeline | None:
    """Return the timeline that records the last requests for the report; None for a broker in another process."""
    from odradek.testing.threaded import ThreadedBroker  # 36 ms

    last = None
    if isinstance(broker, ThreadedBroker):
        last = broker.another_timeline()
        last.start(limit=_LAST_EVENTS, records=False)
    node.stash.setdefault(_BROKERS, []).append((broker, last))
    return last


def _pair(line: str) -> tuple[str, str]:
    name, separator, value = line.partition("=")
    if not separator:
        raise pytest.UsageError(f"a Kafka config must be NAME=VALUE, not {line!r}")
    return name.strip(), value.strip()


def _topic(line: str) -> tuple[str, int | None]:
    name, separator, partitions = line.partition(":")
    if separator and not partitions.strip().isdecimal():
        raise pytest.UsageError(f"a line of kafka_topics must be NAME or NAME:PARTITIONS, not {line!r}")
    return name.strip(), int(partitions) if separator else None
