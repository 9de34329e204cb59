"""The examples of docs/commands.md against Apache Kafka's own broker, and a dump of its data directory."""

import json
import subprocess
import sys

import pytest

from tests.broker_process import command_environment
from tests.campaigns.kafka_tools.kafka_broker import KafkaRuns
from tests.cli.test_commands_page import examples, run

pytestmark = [pytest.mark.xdist_group("kafka-tools"), pytest.mark.timeout(240)]


def test_the_commands_do_the_same_with_kafka_and_read_its_files(tmp_path):
    with KafkaRuns(tmp_path / "runs").serving("kafka", {}) as kafka:
        assert run(kafka.address, tmp_path) == examples()
    directories = sorted(path for path in kafka.data.iterdir() if path.is_dir())
    command = [sys.executable, "-m", "odradek", "dump", "--json", str(kafka.data), *map(str, directories)]
    dumped = subprocess.run(command, env=command_environment(), capture_output=True, text=True, timeout=60, check=False)
    assert (dumped.stderr, dumped.returncode) == ("", 0)
    entries = [json.loads(line) for line in dumped.stdout.splitlines()]
    assert [entry for entry in entries if "undecoded" in entry] == []
    types = {entry.get("type") for entry in entries}
    assert {"TopicRecord", "RegisterBrokerRecord", "OffsetCommit", "GroupMetadata", "TransactionLog", None} <= types
