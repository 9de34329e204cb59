"""One broker for a module of client tests, and topics of their own for its tests."""

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_process import BrokerProcess
from tests.conftest import BROKERS

CLIENT_TIMEOUT_S = 15.0
_topic_numbers = count()


@pytest.fixture(scope="module")
def module_broker(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    data_dir = tmp_path_factory.mktemp(request.module.__name__.rpartition(".")[2]) / "broker"
    with BrokerProcess(data_dir) as running:
        yield running


@pytest.fixture
def broker(module_broker: BrokerProcess, request: pytest.FixtureRequest) -> BrokerProcess:
    """The module's broker; its log is shown beside a failure."""
    request.node.stash.setdefault(BROKERS, []).append(module_broker)
    return module_broker


@pytest.fixture
def new_name() -> Callable[[], str]:
    """Names of topics that nobody else has."""
    return lambda: f"topic-{next(_topic_numbers)}"


@pytest.fixture
def new_topic(broker: BrokerProcess, new_name: Callable[[], str]) -> Callable[..., str]:
    """Creates topics: ``new_topic(3, {"cleanup.policy": "compact"})`` gives the name of one with three partitions."""
    admin = AdminClient({"bootstrap.servers": broker.address})

    def create(partitions: int = 1, config: dict[str, str] | None = None) -> str:
        name = new_name()
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config or {})
        admin.create_topics([topic], operation_timeout=CLIENT_TIMEOUT_S)[name].result(CLIENT_TIMEOUT_S)
        return name

    return create
