"""What Spark's tests share: the session, a broker for those that do not end theirs, a topic of one's own, a plain client."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.broker_process import BrokerProcess
from tests.conftest import BROKERS
from tests.spark.kafka import Kafka
from tests.spark.session import require_java, start_session
from tests.spark.spark_client import SparkClient, Table

# The first test waits for the session, and that, where the connector is not in Ivy's cache, for a download.
TIMEOUT_S = 240
# PySpark leaves the socket that a result came by to the garbage collector.
UNCLOSED_SOCKETS = "ignore:unclosed <socket:ResourceWarning"
# The short run of the source, the sink and the page on Spark that ``make test`` has.
_SHORT_RUN = frozenset({"test_batch_read", "test_batch_write", "test_docs", "test_session"})

_numbers = count()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep these tests in one process."""
    keep_together(item, "spark", is_short=item.path.stem in _SHORT_RUN)


def keep_together(item: pytest.Item, group: str, *, is_short: bool) -> None:
    """Mark a test that needs a session. At collection, since xdist looks at the groups before other hooks may add to them."""
    for mark in (
        *(() if is_short else (pytest.mark.further,)),
        pytest.mark.spark,
        pytest.mark.xdist_group(group),
        pytest.mark.timeout(TIMEOUT_S),
        pytest.mark.filterwarnings(UNCLOSED_SOCKETS),
    ):
        item.add_marker(mark)


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory, shared_broker: BrokerProcess) -> Iterator[SparkSession]:
    """The session. It ends before the shared broker does, which its producers would look for."""
    require_java()
    session = start_session(tmp_path_factory.mktemp("warehouse"))
    yield session
    session.stop()


@pytest.fixture
def spark(spark_session: SparkSession) -> Iterator[SparkSession]:
    """The session; a test that fails leaves no query running behind it."""
    yield spark_session
    for query in spark_session.streams.active:
        query.stop()


@pytest.fixture(scope="session")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("spark") / "broker") as broker:
        yield broker


@pytest.fixture
def broker(shared_broker: BrokerProcess, request: pytest.FixtureRequest) -> BrokerProcess:
    """A broker that runs for all tests, for those that leave it running; its log is shown where one fails."""
    request.node.stash.setdefault(BROKERS, []).append(shared_broker)
    return shared_broker


@pytest.fixture
def kafka(broker: BrokerProcess) -> Kafka:
    return Kafka(broker.address)


@pytest.fixture
def client(spark: SparkSession, broker: BrokerProcess) -> SparkClient:
    return SparkClient(spark, broker.address)


@pytest.fixture
def topic() -> str:
    """A name that no other test has, and that begins none that another test has."""
    return f"topic-{next(_numbers)}-"


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    return Table(spark, tmp_path / "table")
