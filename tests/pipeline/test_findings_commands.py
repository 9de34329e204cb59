"""``odradek pipeline run``, ``findings`` and ``report``: from a broker's life to lines on a terminal, a topic and a page."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from odradek.pipeline.commands import pipeline
from tests.spark.kafka import Kafka


@pytest.fixture
def job(monkeypatch):
    """Run a job in the session there is; it is to go well."""
    monkeypatch.setattr(SparkSession, "stop", lambda _session: None)

    def run(*arguments):
        done = CliRunner().invoke(pipeline, arguments, standalone_mode=False)
        assert (done.exception, done.return_value) == (None, 0)
        return done

    return run


def test_what_a_run_finds_is_on_the_topic_once_on_the_terminal_and_in_the_report(spark, life, warehouse, tmp_path, job):
    life.produce("orders", b"1")
    for _ in range(2):
        life.join_and_leave("restless", "orders")
    cluster = ("--bootstrap-server", life.broker.address, "--findings-topic", "found")
    looking = ("--warehouse", warehouse, "--threshold", "storm_rebalances=4", "--threshold", "window_s=86400")
    page = tmp_path / "report.html"
    ran = job("run", *cluster, *looking, "--report", str(page))
    assert ran.stderr.splitlines()[-1].startswith(f"report: {page}, ")
    assert "findings: 1 high, 0 medium, 1 low; 1 message sent to found" in ran.stderr.splitlines()
    assert "Rebalance storm</b> restless" in page.read_text(encoding="utf-8")
    page.unlink()
    again = job("findings", *cluster, *looking)
    assert again.stderr.splitlines()[-1] == "findings: 1 high, 0 medium, 1 low; 0 messages sent to found"
    [line] = again.stdout.splitlines()
    assert line.startswith("high    rebalance_storm       restless ")
    assert '"rebalances":4' in line
    assert len(Kafka(life.broker.address).records("found")) == 1
    assert job("report", "--warehouse", warehouse, "--out", str(page)).stderr.splitlines()[-1].startswith(f"report: {page}, ")
    assert "Rebalance storm</b> restless" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["findings", "report"])
def test_a_warehouse_that_is_none_is_told_and_not_made(spark, command, tmp_path, name):
    mistyped = tmp_path / "mistyped"
    status, err = command(name, "--warehouse", mistyped, *(["--out", tmp_path / "r.html"] if name == "report" else []))
    assert (status, err.splitlines()[-1].startswith(f"odradek: there is no warehouse at {mistyped}: ")) == (2, True)
    assert not Path(mistyped).exists()


def test_a_threshold_that_is_none_is_told_before_spark_starts(command, warehouse):
    status, err = command("findings", "--warehouse", warehouse, "--threshold", "stuck=3")
    assert (status, len(err.splitlines())) == (2, 1)
    assert err.startswith("odradek: there is no threshold 'stuck'; thresholds: aborted_share, ")
