"""``odradek pipeline``: what is asked for is done, and what stops it is one line and exit status 2."""

import builtins
import sys

import pytest
from pyspark.sql import SparkSession

from odradek.cli.main import main
from odradek.pipeline import ingest
from odradek.pipeline.schema import read_raw


@pytest.fixture
def command(monkeypatch, capsys):
    """Run ``odradek pipeline`` with these arguments in the session there is: (exit status, stderr)."""
    monkeypatch.setattr(SparkSession, "stop", lambda _session: None)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["odradek", "pipeline", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            main()
        return exit_.value.code or 0, capsys.readouterr().err

    return run


def test_ingest_takes_what_there_is_and_says_how_much(spark, life, warehouse, command):
    life.produce("orders", b"1")
    life.join_and_leave("g", "orders")
    status, err = command("ingest", "--bootstrap-server", life.broker.address, "--warehouse", warehouse)
    count = read_raw(spark, warehouse).count()
    assert count > 1
    assert (status, err.splitlines()[-1]) == (0, f"ingest: {count} records in 1 micro-batch")


def test_nobody_at_the_address_is_one_line_before_spark_starts(command, warehouse):
    status, err = command("ingest", "--bootstrap-server", "127.0.0.1:1", "--warehouse", warehouse)
    told = "odradek: no broker answers at 127.0.0.1:1: Connection refused. Start it, or correct --bootstrap-server\n"
    assert (status, err) == (2, told)


def test_something_that_goes_wrong_unforeseen_is_one_line_and_all_of_it_when_asked(command, monkeypatch, warehouse):
    def fail(_options):
        raise ValueError("a\nb")

    monkeypatch.setattr(ingest, "check", fail)
    assert command("ingest", "--warehouse", warehouse) == (2, "odradek: the job failed: a (--verbose shows all)\n")
    status, err = command("ingest", "--warehouse", warehouse, "--verbose")
    assert status == 2
    assert err.startswith("Traceback")


def test_without_the_extra_the_line_says_how_to_install_it(command, monkeypatch, warehouse):
    real_import = builtins.__import__

    def without_it(name, *arguments):
        if name == "odradek.pipeline.ingest":
            raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")
        return real_import(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_it)
    status, err = command("ingest", "--warehouse", warehouse)
    assert (status, err) == (2, 'odradek: pyspark is not installed: pip install "odradek[pipeline]"\n')


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--every", "3x"], "'3x' is not an interval like 30s, 5m or 1h"),
        (["--every", "0s"], "'0s' is not an interval like 30s, 5m or 1h"),
        (["--once", "--every", "30s"], "--once and --every exclude each other"),
        (["--conf", "spark.x"], "'spark.x' is not of the form key=value"),
        (["--starting-offsets", "yesterday"], "--starting-offsets is 'yesterday': say earliest, latest or"),
        (["--bootstrap-server", "localhost"], "'localhost' is not HOST:PORT"),
    ],
)
def test_a_wrong_argument_is_one_line(command, warehouse, arguments, told):
    status, err = command("ingest", "--warehouse", warehouse, *arguments)
    assert status == 2
    assert told in err
    assert len(err.splitlines()) == 1
