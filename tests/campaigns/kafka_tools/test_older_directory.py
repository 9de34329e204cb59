"""A directory of Kafka 4.3.1 keeps its features with odradek until a command raises them, and then goes to Kafka 4.4."""

import shutil
import subprocess
import sys

import pytest

from benchmarks import kafka_jars
from odradek.cli.feature_levels import release_levels
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record, build_batch, read_records
from tests.broker_process import BrokerProcess, command_environment
from tests.campaigns.kafka_tools.kafka_broker import KafkaRuns, until
from tests.campaigns.kafka_tools.kafka_tool import run_tool
from tests.raw_client import RawClient, fetch_fields, produce_fields

pytestmark = [pytest.mark.xdist_group("kafka-tools"), pytest.mark.timeout(300)]

OLDER = {
    "metadata.version": 30,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}
# Both commands also have the voter written into the log.
NEWER = {**OLDER, "metadata.version": 33, "share.version": 2, "kraft.version": 1}
UPGRADE = ("upgrade", "--release-version", "4.4")
SINGLE = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"}


class Engine(RawClient):
    """A client of whichever broker serves the directory."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        super().__init__(host, int(port))

    def features(self) -> dict[str, int]:
        asked = {"client_software_name": "older", "client_software_version": "1"}
        told = self.call(ApiKey.API_VERSIONS, 4, **asked).finalized_features
        return {str(each.name): int(each.max_version_level) for each in told}

    def append(self, value: bytes) -> None:
        """Produce a record, as soon as the topic is led."""

        def is_appended() -> bool:
            answer = self.call(ApiKey.PRODUCE, 9, **produce_fields("t", build_batch([Record(value=value)])))
            return bool(answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE)

        until(is_appended)

    def values(self) -> list[bytes | None]:
        [topic] = self.call(ApiKey.FETCH, 11, **fetch_fields("t", 0)).responses
        data = topic.partitions[0].records
        return [record.value for position, _ in iter_batches(data) for record in read_records(data, position)]


def upgraded_by_kafkas_tool(address):
    return run_tool("org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", address, *UPGRADE)


def upgraded_by_odradeks_command(address):
    words = [sys.executable, "-m", "odradek", "features", *UPGRADE, "-b", address]
    return subprocess.run(words, env=command_environment(), capture_output=True, text=True, timeout=60, check=False)


def test_a_directory_goes_from_kafka_4_3_to_odradek_and_kafka_4_4(tmp_path, monkeypatch):
    with monkeypatch.context() as older:
        older.setenv(kafka_jars.LIBS_VARIABLE, str(kafka_jars.cached("4.3.1")))
        with KafkaRuns(tmp_path / "older").serving("run", SINGLE) as kafka, Engine(kafka.address) as engine:
            topics = [{"name": "t", "num_partitions": 1, "replication_factor": 1}]
            engine.call(ApiKey.CREATE_TOPICS, 5, topics=topics, timeout_ms=10_000)
            engine.append(b"4.3.1")
            assert engine.features() == OLDER
    for upgraded in (upgraded_by_kafkas_tool, upgraded_by_odradeks_command):
        data = tmp_path / upgraded.__name__
        shutil.copytree(kafka.data, data)
        with BrokerProcess(data, settings=SINGLE) as broker, Engine(broker.address) as engine:
            assert (engine.features(), engine.values()) == (OLDER, [b"4.3.1"])
            raised = upgraded(broker.address)
            assert raised.returncode == 0, raised.stderr
            assert engine.features() == NEWER
            engine.append(b"odradek")
    with KafkaRuns(tmp_path / "newer").serving("run", SINGLE, data) as newer, Engine(newer.address) as engine:
        engine.append(b"4.4.0")
        assert (engine.features(), engine.values()) == (NEWER, [b"4.3.1", b"odradek", b"4.4.0"])


def test_odradeks_command_knows_the_features_of_a_release_as_kafkas_does():
    for version in ("3.3-IV3", "3.9", "4.0-IV1", "4.0", "4.1", "4.2-IV0", "4.2", "4.3", "4.4-IV0", kafka_jars.VERSION):
        told = run_tool("org.apache.kafka.tools.FeatureCommand", "version-mapping", "--release-version", version)
        assert told.returncode == 0, told.stderr
        pairs = [line.split()[0].split("=") for line in told.stdout.splitlines() if "=" in line]
        assert {name: int(level) for name, level in pairs} == release_levels(version), version
