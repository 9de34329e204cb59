"""What the pipeline's tests share: Spark's one session with the jobs' settings, a warehouse, a broker with a history."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession

from odradek.cli.main import main
from odradek.pipeline.ingest import IngestOptions
from odradek.pipeline.session import configured
from odradek.pipeline.session import spark_session as pipeline_session
from odradek.pipeline.tables import build_tables
from tests.broker_process import BrokerProcess
from tests.pipeline.raw_by_hand import put_raw, put_samples
from tests.pipeline.tables_story import Tables, whole_history
from tests.spark.conftest import keep_together
from tests.spark.session import require_java, start_session

TIMEOUT_S = 20.0
# Whose tests are further ones: those of commands that live through much, or of tables made of all that there is to tell.
_LONG = frozenset(
    f"test_{name}"
    for name in (
        *("checkpoint", "differential", "findings", "findings_commands", "findings_sink", "ingest", "kill_ingest", "report"),
        *("session", "tables_passes"),
    )
)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep these tests in one process: the short ones in that of Spark's own, where there is a session, the others elsewhere."""
    is_short = item.path.stem not in _LONG and "story_warehouse" not in getattr(item, "fixturenames", ())
    keep_together(item, "spark" if is_short else "pipeline", is_short=is_short)


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """A session with the jobs' settings, in the JVM of Spark's own tests if that is of this process, with which it ends."""
    require_java()
    start_session(tmp_path_factory.mktemp("warehouse"))
    return pipeline_session(config={"spark.sql.shuffle.partitions": "1"})


@pytest.fixture
def spark(spark_session: SparkSession) -> Iterator[SparkSession]:
    """The session; a test that fails leaves no query running behind it, and a command that ran in it none of its settings."""
    with configured(spark_session, {"spark.sql.shuffle.partitions": "1"}):
        yield spark_session
    for query in spark_session.streams.active:
        query.stop()


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return str(tmp_path / "warehouse")


@pytest.fixture
def life(broker_process) -> "Life":
    """A broker, few partitions for its coordinators, and clients."""
    few = {"offsets.topic.num.partitions": 2, "transaction.state.log.num.partitions": 2, "num.partitions": 2}
    often = {"group.consumer.min.heartbeat.interval.ms": 200, "group.consumer.heartbeat.interval.ms": 200}
    return Life(broker_process(settings=few | often | {"group.consumer.assignment.interval.ms": 0}))


@pytest.fixture
def options(life: "Life", warehouse: str) -> IngestOptions:
    return IngestOptions(life.broker.address, warehouse)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[object, str]]:
    """Run ``odradek pipeline`` with these arguments in the session there is: (exit status, stderr)."""
    monkeypatch.setattr(SparkSession, "stop", lambda _session: None)

    def run(*arguments: object) -> tuple[object, str]:
        monkeypatch.setattr(sys, "argv", ["odradek", "pipeline", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            main()
        return exit_.value.code or 0, capsys.readouterr().err

    return run


class Life:
    """What clients do at a broker."""

    def __init__(self, broker: BrokerProcess, settings: dict[str, object] | None = None) -> None:
        """``settings`` are what clients need beside the address."""
        self.broker = broker
        self._settings = {**(settings or {}), "bootstrap.servers": broker.address, "log_level": 0}
        self._producers: dict[str, Producer] = {}

    def produce(self, topic: str, *values: bytes) -> None:
        producer = Producer({**self._settings, "linger.ms": 0})
        for value in values:
            producer.produce(topic, value, partition=0)
        assert producer.flush(TIMEOUT_S) == 0

    def commit(self, group: str, topic: str, offset: int, partition: int = 0) -> None:
        """Commit as a consumer that assigns partitions itself does."""
        consumer = Consumer({**self._settings, "group.id": group, "enable.auto.commit": False})
        consumer.commit(offsets=[TopicPartition(topic, partition, offset)], asynchronous=False)
        consumer.close()

    def join_and_leave(self, group: str, topic: str) -> None:
        """A generation of one member, and then none."""
        settings = {"group.id": group, "client.id": f"{group}-client", "session.timeout.ms": 6000}
        consumer = Consumer({**self._settings, **settings, "auto.offset.reset": "earliest"})
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(0.05)
        consumer.close()

    def transaction(self, transactional_id: str, topic: str, *values: bytes, group_offset: int | None = None) -> None:
        """A committed one; with a ``group_offset`` the group ``transactional_id`` commits that within it."""
        producer = self._producers.get(transactional_id)
        if producer is None:
            producer = Producer({**self._settings, "transactional.id": transactional_id, "linger.ms": 0})
            producer.init_transactions(TIMEOUT_S)
            self._producers[transactional_id] = producer
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        if group_offset is not None:
            consumer = Consumer({**self._settings, "group.id": transactional_id})
            producer.send_offsets_to_transaction(
                [TopicPartition(topic, 0, group_offset)], consumer.consumer_group_metadata(), TIMEOUT_S
            )
            consumer.close()
        producer.commit_transaction(TIMEOUT_S)


def as_dicts(rows) -> list[dict]:
    """Rows, and what is in them, as plain values."""
    return [json.loads(text) for text in rows.toJSON().collect()]


@pytest.fixture
def fixed_partitions(spark: SparkSession) -> Iterator[None]:
    """More than one, so that what is written could be spread over files in other ways."""
    with configured(spark, {"spark.sql.shuffle.partitions": "2"}):
        yield


@pytest.fixture(scope="session")
def story_warehouse(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A warehouse with the tables of all that tests tell about, made in one pass."""
    path = str(tmp_path_factory.mktemp("story"))
    history = whole_history()
    put_raw(spark_session, path, 0, history.rows)
    put_samples(spark_session, path, history.samples)
    with configured(spark_session, {"spark.sql.shuffle.partitions": "2"}):
        build_tables(spark_session, path)
    return path


@pytest.fixture(scope="session")
def tables(spark_session: SparkSession, story_warehouse: str) -> Tables:
    return Tables(spark_session, story_warehouse)
