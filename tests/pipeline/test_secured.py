"""The pipeline reads from a broker that wants TLS and SASL, with the file that Kafka's commands take."""

import pytest

from odradek.pipeline import commands
from odradek.pipeline.errors import PipelineError
from odradek.pipeline.schema import read_raw
from tests.pipeline.conftest import Life
from tests.secure import SecureBroker


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    settings = {"offsets.topic.num.partitions": 2, "transaction.state.log.num.partitions": 2}
    with SecureBroker(tmp_path_factory.mktemp("secured") / "data", settings=settings) as broker:
        yield broker


@pytest.fixture
def ingest(spark, command, secured, warehouse):
    """``odradek pipeline ingest`` in the session, with the broker's file: (exit status, stderr)."""
    arguments = ("--bootstrap-server", secured.address, "--warehouse", warehouse, "--command-config", secured.properties_path)
    return lambda *more: command("ingest", *arguments, *more)


def test_records_of_a_broker_behind_tls_and_sasl_are_in_the_warehouse(spark, ingest, secured, warehouse):
    life = Life(secured, secured.python("# librdkafka"))
    life.produce("orders", b"1", b"2")
    life.commit("by-hand", "orders", 2)
    life.transaction("bank", "orders", b"3", group_offset=1)
    status, err = ingest()
    assert status == 0, err
    rows = read_raw(spark, warehouse)
    assert {(row.group, row.committed_offset) for row in rows.where("kind = 'offset_commit'").collect()} == {
        ("by-hand", 2),
        ("bank", 1),
    }
    assert {row.transactional_id for row in rows.where("kind = 'transaction'").collect()} == {"bank"}
    assert not [secret for secret in secured.secrets if secret in err]


def test_an_option_weighs_more_than_the_file_and_a_wrong_password_is_one_line(ingest, secured):
    line = secured.properties["sasl.jaas.config"].replace(secured.secrets[0], "a-guess")
    status, err = ingest("--kafka-config", f"sasl.jaas.config={line}")
    assert status == 2
    assert "Invalid username or password" in err.splitlines()[-1]
    assert "a-guess" not in err


@pytest.mark.parametrize(
    ("content", "told"), [(None, "No such file"), (b"\xff", "not a properties file"), (b"a=\\u1", "not a properties file")]
)
def test_a_file_that_cannot_be_read_is_one_line(command, tmp_path, warehouse, content, told):
    path = tmp_path / "client.properties"
    if content is not None:
        path.write_bytes(content)
    status, err = command("ingest", "--warehouse", warehouse, "--command-config", path)
    assert (status, told in err, len(err.splitlines())) == (2, True, 1)


def test_what_is_sent_goes_with_the_file_too(command, monkeypatch, secured, warehouse):
    asked = {}

    def findings_job(**what):
        asked.update(what)
        raise PipelineError("enough")

    monkeypatch.setattr(commands, "_findings_job", findings_job)
    arguments = ("--command-config", secured.properties_path, "--kafka-config", "acks=1", "--findings-topic", "found")
    assert command("findings", "--warehouse", warehouse, *arguments) == (2, "odradek: enough\n")
    expected = {"acks": "1", **secured.properties}
    del expected["bootstrap.servers"]
    assert asked["kafka_config"] == expected
