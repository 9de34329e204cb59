"""``odradek pipeline``: what is asked for is done, and what stops it is one line and exit status 2."""

import builtins
from threading import Event

import pytest

from odradek.pipeline import ingest
from odradek.pipeline.errors import NoRecords, PipelineError, Unreachable
from odradek.pipeline.ingest import Ingested
from odradek.pipeline.schema import read_raw


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
        (["--once", "--every", "30s"], "--once and --every cannot be used together"),
        (["--conf", "spark.x"], "'spark.x' is not of the form key=value"),
        (["--starting-offsets", "yesterday"], "--starting-offsets is 'yesterday': give earliest, latest or"),
        (["--warehouse", "a[1]"], "--warehouse a[1] contains [ ], which Spark reads as a pattern: use another name"),
        (["--bootstrap-server", "localhost"], "'localhost' is not HOST:PORT"),
    ],
)
def test_a_wrong_argument_is_one_line(command, warehouse, arguments, told):
    status, err = command("ingest", "--warehouse", warehouse, *arguments)
    assert status == 2
    assert told in err
    assert len(err.splitlines()) == 1


@pytest.fixture
def runs(command, monkeypatch):
    """Run ``ingest --every``, with this for what each run does, until there is nothing more: (exit status, stderr)."""

    def run(warehouse, *outcomes):
        left = list(outcomes)

        def ingest_once(*_arguments):
            outcome = left.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        def wait(_event, seconds):
            assert seconds == 30
            if not left:
                raise KeyboardInterrupt

        monkeypatch.setattr(ingest, "check", lambda _options: None)
        monkeypatch.setattr(ingest, "ingest", ingest_once)
        monkeypatch.setattr(Event, "wait", wait)
        return command("ingest", "--warehouse", warehouse, "--every", "30s")

    return run


def test_a_job_that_goes_on_waits_for_a_cluster_that_is_away_until_it_is_stopped(spark, runs, warehouse):
    status, err = runs(warehouse, NoRecords("none yet"), Ingested(5, 0, 1), Unreachable("it is away"), Ingested(7, 2, 2))
    assert status == 130
    assert err.splitlines()[1:9] == [
        "ingest: looking at the cluster",
        "none yet",
        "ingest: looking at the cluster",
        "ingest: 5 records in 1 micro-batch",
        "ingest: looking at the cluster",
        "it is away",
        "ingest: looking at the cluster",
        "ingest: 7 records, 2 of them to quarantine in 2 micro-batches",
    ]


def test_a_job_that_goes_on_ends_where_waiting_would_not_help(spark, runs, warehouse):
    status, err = runs(warehouse, Ingested(5, 0, 1), PipelineError("the warehouse is another's"))
    assert (status, err.splitlines()[-1]) == (2, "odradek: the warehouse is another's")
