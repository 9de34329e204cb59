"""Other users of the machine cannot read a broker's directories, and a start warns if they can, or if nobody can log in."""

import json
import os

import pytest
from click.testing import CliRunner

from odradek.cli.main import command
from odradek.protocol.api_keys import ApiKey
from tests.raw_client import RawClient

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
SCRAM_ONLY = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": SCRAM,
}
USER = "SCRAM-SHA-256=[name=alice,password=alice-secret]"
BROKER = 4


@pytest.fixture(autouse=True)
def usual_umask():
    former = os.umask(0o022)
    yield
    os.umask(former)


def mode(path):
    return path.stat().st_mode & 0o777


def warnings(broker):
    lines = map(json.loads, broker.stderr.splitlines())
    return [line for line in lines if line["level"] == "warning"]


def format_directory(path, *arguments):
    assert CliRunner().invoke(command, ["format", "--data-dir", str(path), *arguments]).exit_code == 0


def test_directories_that_the_broker_makes_are_for_their_owner_only(broker_process, tmp_path):
    metadata = tmp_path / "metadata"
    broker = broker_process(settings={"metadata.log.dir": metadata})
    for directory in (broker.data_dir, metadata, metadata / "__cluster_metadata-0"):
        assert mode(directory) == 0o700
    assert broker.stop() == 0
    assert warnings(broker) == []


def test_directories_that_format_makes_are_for_their_owner_only(tmp_path):
    format_directory(tmp_path / "data", "--add-scram", USER)
    assert mode(tmp_path / "data") == 0o700


def test_an_existing_directory_keeps_its_mode_and_without_secrets_there_is_no_warning(broker_process, tmp_path):
    (tmp_path / "data").mkdir(0o755)
    broker = broker_process(tmp_path / "data")
    assert mode(broker.data_dir) == 0o755
    assert broker.stop() == 0
    assert warnings(broker) == []


def test_a_readable_directory_with_a_users_verifier_is_one_warning(broker_process, tmp_path):
    (tmp_path / "data").mkdir(0o755)
    format_directory(tmp_path / "data", "--add-scram", USER)
    broker = broker_process(tmp_path / "data")
    assert broker.stop() == 0
    [line] = warnings(broker)
    assert line["event"].startswith("other users of this machine can read the secrets")
    assert line["remedy"] == f"chmod 700 {broker.data_dir}"


def test_a_readable_directory_with_an_altered_password_is_one_warning(broker_process, tmp_path):
    (tmp_path / "data").mkdir(0o755)
    broker = broker_process(tmp_path / "data")
    altered = {"name": "listener.name.plaintext.ssl.key.password", "config_operation": 0, "value": "secret"}
    asked = [{"resource_type": BROKER, "resource_name": "1", "configs": [altered]}]
    with RawClient(broker.host, broker.port) as client:
        [response] = client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=asked).responses
    assert response.error_message is None
    broker.stop()
    assert warnings(broker) == []
    broker.start()
    broker.stop()
    assert [line["remedy"] for line in warnings(broker)] == [f"chmod 700 {broker.data_dir}"]


def test_a_broker_that_nobody_can_log_in_to_says_how_to_add_a_user(broker_process):
    broker = broker_process(settings=SCRAM_ONLY)
    broker.stop()
    [line] = warnings(broker)
    assert line["event"].startswith("nobody can log in")
    assert "odradek format --add-scram-file" in line["remedy"]
    assert "odradek users add" in line["remedy"]


@pytest.mark.parametrize("others", [{"listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"}, {}])
def test_a_user_or_another_way_in_is_no_warning(broker_process, tmp_path, others):
    if not others:
        format_directory(tmp_path / "data", "--add-scram", USER)
    broker = broker_process(tmp_path / "data", settings={**SCRAM_ONLY, **others})
    broker.stop()
    assert warnings(broker) == []
