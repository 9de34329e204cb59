"""`odradek grow-out` writes a file for Apache Kafka and nothing else, and says what its user should know.

That Kafka starts with it is tested in campaigns/growing_out.
"""

import pytest

from odradek.common.config.broker_config import parse_properties


@pytest.fixture
def grow_out(command, tmp_path):
    """Run it on the data of a broker: (exit status, stdout, stderr), and what it has written."""

    def run(broker, *arguments):
        out = tmp_path / "server.properties"
        place = ("--data-dir", broker.data_dir, "--port", broker.port, "--out", out)
        result = command("grow-out", *place, *arguments)
        return *result, parse_properties(out.read_text()) if out.exists() else None

    return run


@pytest.fixture
def stopped(broker_process):
    broker = broker_process()
    broker.stop()
    return broker


def files_of(broker):
    return {path: path.stat().st_mtime_ns for path in broker.data_dir.rglob("*")}


def test_the_file_names_the_data_and_the_address_that_clients_know(grow_out, stopped):
    before = files_of(stopped)
    status, out, err, properties = grow_out(stopped, "--controller-port", "9999")
    assert (status, err) == (0, "")
    assert "kafka-server-start.sh" in out
    assert properties["log.dirs"] == str(stopped.data_dir)
    assert properties["listeners"] == f"PLAINTEXT://127.0.0.1:{stopped.port},CONTROLLER://127.0.0.1:9999"
    assert files_of(stopped) == before


def test_a_broker_that_runs_is_left_alone(grow_out, broker_process):
    status, _, err, properties = grow_out(broker_process())
    assert (status, properties) == (2, None)
    assert err.endswith("is in use by a broker: stop it first\n")


def test_a_kill_is_told(grow_out, broker_process):
    broker = broker_process()
    broker.kill9()
    status, _, err, properties = grow_out(broker)
    assert (status, properties is None) == (0, False)
    assert "was not stopped cleanly" in err


def test_what_kafka_does_not_have_and_what_only_kafka_acts_on_are_told(grow_out, stopped):
    _, _, err, _ = grow_out(stopped, "--set", "socket.busy.poll.us=0", "--set", "num.io.threads=3")
    assert err.splitlines() == [
        "odradek: socket.busy.poll.us is left out: Apache Kafka has no such config",
        "odradek: num.io.threads is kept: odradek ignored it, but Kafka will use it",
    ]


def test_a_file_that_is_there_is_not_written_over(grow_out, stopped):
    grow_out(stopped)
    status, _, err, _ = grow_out(stopped)
    assert (status, "exists: name another file with --out" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--set", "node.id=2"), "has the data of node 1, not 2"),
        (("--port", "0"), "must be on a fixed port"),
        (("--set", "log.retention.ms=much"), "log.retention.ms"),
    ],
)
def test_what_kafka_could_not_start_with_is_refused(grow_out, stopped, arguments, reason):
    status, _, err, properties = grow_out(stopped, *arguments)
    assert (status, properties) == (2, None)
    assert reason in err


def test_a_directory_without_data_is_refused_and_stays_as_it_is(command, tmp_path):
    status, _, err = command("grow-out", "--data-dir", tmp_path / "nothing", "--out", tmp_path / "out")
    assert (status, "is not a data directory" in err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_paths_are_written_whole_since_kafka_may_be_started_elsewhere(grow_out, stopped, monkeypatch, tmp_path):
    monkeypatch.chdir(stopped.data_dir.parent)
    config = tmp_path / "odradek.properties"
    config.write_text(f"metadata.log.dir={stopped.data_dir.name}\n")
    stopped.data_dir, absolute = stopped.data_dir.name, stopped.data_dir
    _, _, _, properties = grow_out(stopped, "--config", config)
    assert (properties["log.dirs"], properties["metadata.log.dir"]) == (str(absolute), str(absolute))
