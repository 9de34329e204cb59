"""Shared by all tests: a real broker on demand, its log beside a failure, and the choice of tests."""

import asyncio
import faulthandler
import gc
import math
import os
import socket
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import uvloop
from hypothesis import settings
from kafka.net.inet import KafkaNetSocket

from benchmarks.load_tool import MissingTool
from odradek.build import is_compiled
from tests.broker_process import REPOSITORY, BrokerProcess
from tests.campaigns.table import SHORT_TESTS
from tests.raw_client import RawClient
from tests.tls import Certificates

# How long an example takes is the machine's affair, which has other things to do.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


class _LeftOpen(socket.socket):
    """A socket of kafka-python, without the warning where it is left open.

    That is so where its connection is refused, or its client is closed while it connects.
    """

    def __del__(self) -> None:
        self.close()


class TimedLoop(uvloop.Loop):
    """uvloop's, which ends what it runs when a test's time is over. By itself it catches what that raises, and goes on."""

    _running: asyncio.Future[object] | None = None
    _is_late: BaseException | None = None

    def run_until_complete(self, future: Any) -> Any:
        """Run it. Raises what the test's time raises in any callback."""
        self._running = asyncio.ensure_future(future, loop=self)
        try:
            return super().run_until_complete(self._running)
        except asyncio.CancelledError:
            if self._is_late is None:
                raise
            raise self._is_late from None

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Look for the end of the test's time among what callbacks have raised."""
        raised = context.get("exception")
        if isinstance(raised, pytest.fail.Exception) and self._running is not None:
            self._is_late = raised
            self._running.cancel()
        else:
            super().call_exception_handler(context)


# kafka-python leaves such sockets to the garbage collector, whichever test it runs in.
KafkaNetSocket.socket = lambda _, *kind: _LeftOpen(*kind)
# These are marked ``further``, which ``make test`` leaves out: comparisons with Apache Kafka, the image, the site, and all of a
# directory or a file.
_KAFKA_GROUPS = frozenset({"kafka-clusters", "kafka-tools"})
_FURTHER_GROUPS = _KAFKA_GROUPS | {"wire-differential", "image", "site"}
_FURTHER = ("tests/languages/", *SHORT_TESTS)
# The only places of Spark's tests: a run of these alone reads no other file.
_SPARK = ("tests/spark/", "tests/pipeline/", "tests/campaigns/pipeline_cluster/", "tests/project/test_docs.py")
# The compiled run leaves these out, and whatever runs Apache Kafka, which has judged odradek interpreted. Their subjects are not
# compiled: rooms without a compiled module, text and options of the commands that ask a broker over the wire, the repository.
_ROOMS_LEFT_OUT = ("benchmarks", "common/config", "demo", "http", "languages", "page", "pipeline", "project", "spark")
_COMMANDS_LEFT_OUT = (
    *("acls", "brokers", "certificate_file", "certs", "client_metrics", "command_config", "command_line", "commands_page"),
    *("configs", "documented_commands", "documented_metrics", "groups", "other_systems", "profiles", "progress"),
    *("quiet_collections", "quiet_options", "quotas", "tokens", "topic_changes", "topics", "transactions", "users"),
)
_JUDGES_LEFT_OUT = ("controller_differential", "mixed_clusters", "pipeline_cluster", "quota_differential", "sasl_differential")
LEFT_OUT_COMPILED = (
    *(f"tests/{room}/" for room in _ROOMS_LEFT_OUT),
    *(f"tests/cli/test_{command}.py" for command in _COMMANDS_LEFT_OUT),
    *(f"tests/campaigns/{judge}/" for judge in _JUDGES_LEFT_OUT),
    # Kafka Streams takes more of the processor than the broker: its clusters under kills are enough.
    "tests/clients/streams/",
    *("tests/campaigns/test_campaigns.py", "tests/protocol/test_message_types.py"),
)
_MINUTES_BY_ITSELF = "tests/campaigns/image_steps/"
# The pipeline decodes coordinators' records by compiled modules: by itself, and as a whole in Spark's processes.
_KEPT_COMPILED = tuple(f"tests/pipeline/test_{name}.py" for name in ("by_columns", "decode", "secured"))
# A test may go on for so long after its timeout, which compiled code does not notice. A teardown after a failure has no other.
_AFTER_TIMEOUT_S = 90
_STDERR = pytest.StashKey[int]()
BROKERS = pytest.StashKey[list[BrokerProcess]]()
_topic_numbers = count()


@pytest.fixture
def broker_process(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., BrokerProcess]]:
    """Starts brokers: ``broker_process()``, or with ``settings={"num.partitions": 3}``, ``data_dir=...``, ``arguments=("--x",)``.

    Each is a ``BrokerProcess`` that is ready; those that still run at the end of the test are stopped, which must go well.
    """
    brokers = request.node.stash.setdefault(BROKERS, [])
    with ExitStack() as stack:

        def start(
            data_dir: Path | None = None, *, settings: Mapping[str, object] | None = None, arguments: tuple[str, ...] = ()
        ) -> BrokerProcess:
            broker = BrokerProcess(data_dir or tmp_path / f"broker-{len(brokers)}", settings=settings, arguments=arguments)
            brokers.append(broker)
            return stack.enter_context(broker)

        yield start


@pytest.fixture(scope="module")
def module_broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker with default settings for all tests of a module; use ``broker``, and topics that no other test uses."""
    with BrokerProcess(tmp_path_factory.mktemp(request.module.__name__.rpartition(".")[2]) / "broker") as broker:
        yield broker


@pytest.fixture
def broker(module_broker: BrokerProcess, request: pytest.FixtureRequest) -> BrokerProcess:
    """The module's broker, which its tests share."""
    request.node.stash.setdefault(BROKERS, []).append(module_broker)
    return module_broker


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[RawClient]:
    """A raw client of the module's broker."""
    with RawClient(broker.host, broker.port) as client:
        yield client


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates of a broker, of clients, and of strangers."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def new_name() -> Callable[[], str]:
    """Names of topics that nobody else has."""
    return lambda: f"topic-{next(_topic_numbers)}"


def pytest_configure(config: pytest.Config) -> None:
    """Keep standard error, which is not captured yet."""
    config.stash[_STDERR] = os.dup(2)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the project's own."""
    parser.addoption("--compiled-only", action="store_true", help="leave out tests of what is never compiled")
    parser.addoption("--further-compiled", action="store_true", help="leave further tests to the compiled run if it has them")
    parser.addoption("--no-missing-tools", action="store_true", help="fail, and do not skip, where a program is missing")
    parser.addoption("--rewrite", action="store_true", help="write scenario files anew instead of comparing them")


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run asynchronous tests on the loop that ``serve`` takes, uvloop's, or on those that the mark ``asyncio`` names."""
    marker = item.get_closest_marker("asyncio")
    loops = {"uvloop": TimedLoop, "asyncio": asyncio.new_event_loop}
    return loops if marker is not None and "loop_factories" in marker.kwargs else {"uvloop": TimedLoop}


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the further tests, and keep those that share a module's broker in one process: each would start its own."""
    path = _place(item.path)
    if item.get_closest_marker("spark") is not None and not path.startswith(_SPARK):
        reason = f"{path} has a test with the mark spark, and is not a place of Spark's tests in tests/conftest.py"
        raise pytest.UsageError(reason)
    if path.startswith(_FURTHER) or _group(item) in _FURTHER_GROUPS:
        item.add_marker(pytest.mark.further)
    if "module_broker" in getattr(item, "fixturenames", ()) and not _group(item):
        item.add_marker(pytest.mark.xdist_group(path.removeprefix("tests/")))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip a test whose program is missing, on one line for all of them. Show the logs of a failed test's brokers."""
    report = yield
    if call.excinfo is not None and call.excinfo.errisinstance(MissingTool) and not item.config.getoption("--no-missing-tools"):
        report.outcome, report.longrepr = "skipped", (str(REPOSITORY / "tests"), None, f"Skipped: {call.excinfo.value}")
    if report.failed:
        report.sections += [
            (f"log of the broker on {broker.address}", broker.stderr) for broker in item.stash.get(BROKERS, []) if broker.stderr
        ]
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End a process whose test does not end, and show where its threads are: the others would wait for it."""
    _watch(item)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """Go on watching: pytest ends its own watch here, before the teardown."""
    if isinstance(node, pytest.Item):
        _watch(node)


def _watch(item: pytest.Item) -> None:
    faulthandler.dump_traceback_later(_timeout_s(item) + _AFTER_TIMEOUT_S, exit=True, file=item.config.stash[_STDERR])


def _timeout_s(item: pytest.Item) -> float:
    mark = item.get_closest_marker("timeout")
    return float(mark.args[0] if mark is not None else item.config.getini("timeout"))


def _place(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def _group(item: pytest.Item) -> str:
    mark = item.get_closest_marker("xdist_group")
    return mark.args[0] if mark is not None else ""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave a file unread if the run has none of its tests: each process would import it, and all that it imports."""
    if collection_path.suffix != ".py" or not collection_path.is_relative_to(REPOSITORY):
        return None
    path = _place(collection_path)
    is_never_compiled = _is_left_out_compiled(path)
    is_without_spark = config.getoption("markexpr") == "spark" and not path.startswith(_SPARK)
    return (config.getoption("compiled_only") and is_never_compiled) or is_without_spark or None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what another run has, skip the tests that are interpreted only, and begin with what takes longest."""
    if config.getoption("compiled_only"):
        items[:] = [item for item in items if _group(item) not in _KAFKA_GROUPS]
    if config.getoption("further_compiled"):
        items[:] = [item for item in items if item.get_closest_marker("further") is None or not _is_run_compiled(item)]
    if is_compiled():
        for item in items:
            if item.get_closest_marker("interpreted") is not None:
                item.add_marker(pytest.mark.skip("odradek is compiled here"))
    sizes = Counter(map(_group, items))
    items.sort(key=lambda item: -_tests_with(item, sizes))


def _is_left_out_compiled(path: str) -> bool:
    return path.startswith(LEFT_OUT_COMPILED) and path not in _KEPT_COMPILED


def _is_run_compiled(item: pytest.Item) -> bool:
    is_interpreted_only = item.get_closest_marker("interpreted") is not None or _group(item) in _KAFKA_GROUPS
    return not is_interpreted_only and not _is_left_out_compiled(_place(item.path))


def _tests_with(item: pytest.Item, sizes: Counter[str]) -> float:
    """The number of tests that the item shares a process with. What takes minutes by itself counts for more than all of them."""
    if item.location[0].startswith(_MINUTES_BY_ITSELF):
        return math.inf
    return sizes[_group(item)] if _group(item) else 1


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going through ten thousand tests whenever one of them asks for a full collection."""
    gc.collect()
    gc.freeze()
