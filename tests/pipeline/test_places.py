"""Wrong places are told in one line before Spark starts, and a warehouse elsewhere is left to Spark."""

import pytest

from odradek.pipeline import commands, session
from odradek.pipeline.errors import NoRecords, PipelineError, check_report_file, check_warehouse
from odradek.pipeline.warehouse import CLUSTER_FILE


@pytest.fixture
def nothing_starts(monkeypatch):
    def start(*_arguments, **_named):
        raise AssertionError("Spark is started")

    monkeypatch.setattr(session, "spark_session", start)
    # A cluster is looked for before.
    monkeypatch.setattr(commands, "_options", lambda **where: type("Options", (), where))


@pytest.mark.parametrize(
    ("job", "told"),
    [
        (
            ("report", "--out", "{there}/nowhere/x.html", "--warehouse", "{there}"),
            "there is no directory {there}/nowhere for the",
        ),
        (("report", "--out", "{there}", "--warehouse", "{there}"), "cannot write the report to {there}: it is a directory"),
        (
            ("report", "--out", "{there}/x.html", "--warehouse", "{there}/a"),
            "there is no warehouse at {there}/a: run odradek pipeline",
        ),
        (("report", "--out", "{there}/x.html", "--warehouse", "{there}/file"), "the warehouse {there}/file is not a directory"),
        (("tables", "--warehouse", "file://{there}/a"), "there is no warehouse at {there}/a: "),
        (("findings", "--warehouse", "{there}/a"), "there is no warehouse at {there}/a: "),
        (
            ("ingest", "--warehouse", "{there}/file/a"),
            "cannot write to the warehouse {there}/file/a: no permission on {there}/file",
        ),
        (
            ("run", "--warehouse", "{there}/a", "--report", "{there}/no/x.html"),
            "{there}/no for the report: create it, or choose another",
        ),
    ],
)
def test_a_place_that_is_none_is_told_before_spark_starts(command, nothing_starts, tmp_path, job, told):
    for name in ("file", CLUSTER_FILE):
        (tmp_path / name).touch()
    status, err = command(*(each.format(there=tmp_path) for each in job))
    assert (status, len(err.splitlines())) == (2, 1)
    assert told.format(there=tmp_path) in err
    assert not (tmp_path / "a").exists()


def test_what_can_be_used_is_passed(tmp_path):
    check_report_file(str(tmp_path / "report.html"))
    check_warehouse(str(tmp_path / "new" / "warehouse"), master=None, config={}, may_create=True)
    (tmp_path / CLUSTER_FILE).touch()
    check_warehouse(str(tmp_path), master="local[2]", config={}, may_create=False)


@pytest.mark.parametrize(
    ("warehouse", "master", "config", "environment"),
    [
        ("s3a://bucket/history", None, {}, {}),
        ("hdfs:///history", None, {}, {}),
        ("history", "spark://host:7077", {}, {}),
        ("history", None, {"spark.hadoop.fs.defaultFS": "hdfs://host"}, {}),
        ("history", None, {}, {"HADOOP_CONF_DIR": "/etc/hadoop"}),
        ("history", None, {}, {"PYSPARK_GATEWAY_PORT": "1"}),
    ],
)
def test_a_warehouse_that_may_be_elsewhere_is_left_to_spark(monkeypatch, warehouse, master, config, environment):
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    check_warehouse(warehouse, master=master, config=config, may_create=False)


def test_without_a_scheme_the_current_directory_is_meant(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NoRecords, match=f"there is no warehouse at {tmp_path}/history: "):
        check_warehouse("history", master=None, config={"spark.x": "fs.defaultFS"}, may_create=False)


def test_a_report_on_a_directory_names_the_option(tmp_path):
    with pytest.raises(PipelineError, match="Choose another --report"):
        check_report_file(str(tmp_path), "--report")
