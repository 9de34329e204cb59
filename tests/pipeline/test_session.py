"""What does not fit together is told in one line, before any work is done."""

import fcntl
import re
import subprocess
import sys

import pyspark
import pytest
from pyspark import SparkContext

from odradek.pipeline import session
from odradek.pipeline.errors import PipelineError
from odradek.pipeline.session import CONNECTOR, spark_session
from tests.broker_process import command_environment
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.spark.session import require_java


@pytest.fixture
def no_jvm(monkeypatch):
    """As if none had been started yet."""
    monkeypatch.setattr(SparkContext, "_gateway", None)


def refusal():
    with pytest.raises(PipelineError) as refused:
        spark_session()
    line = str(refused.value)
    assert "\n" not in line
    return line


def test_where_java_is_missing_the_line_says_how_to_install_it(no_jvm, monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert re.search(r"needs Java 17 or newer, and java does not run: install it \(.*apt-get install", refusal())


def test_where_java_is_too_old_the_line_says_how_old(no_jvm, monkeypatch, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "java is Java 11: install it" in refusal()


def test_a_session_leaves_nothing_in_the_current_directory(tmp_path):
    require_java()
    program = "from odradek.pipeline.session import spark_session; spark_session('local[1]').range(1).collect()"
    command = [sys.executable, "-c", program]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=300, env=command_environment())
    # The JVM ends a moment after the program that started it.
    until(lambda: not (tmp_path / "artifacts").exists(), 30)


def test_a_spark_of_another_version_than_pyspark_is_refused(spark, monkeypatch):
    monkeypatch.setattr(pyspark, "__version__", "3.5.1")
    assert "PySpark is 3.5.1 and Spark is 4.0.0: pip install pyspark==4.0.0" in refusal()


@pytest.fixture
def no_java_options(monkeypatch, tmp_path):
    """As if nobody had said anything about Java."""
    for name in session._JAVA_OPTIONS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))


def test_a_jvm_that_does_all_the_work_collects_garbage_on_all_cores(no_java_options):
    chosen = session._collector({"spark.driver.extraJavaOptions": "-XX:+UseStringDeduplication"})
    assert "-XX:+UseParallelGC" in chosen["spark.driver.defaultJavaOptions"].split()


def test_a_collector_chosen_by_a_config_stays(no_java_options):
    assert session._collector({"spark.driver.extraJavaOptions": "-Dx=y -XX:+UseSerialGC"}) == {}


@pytest.mark.parametrize("name", session._JAVA_OPTIONS)
def test_a_collector_chosen_by_the_environment_stays(no_java_options, monkeypatch, name):
    monkeypatch.setenv(name, "-XX:+UseZGC")
    assert session._collector({}) == {}


def test_a_collector_chosen_by_sparks_defaults_stays(no_java_options, tmp_path):
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.extraJavaOptions  -XX:+UseG1GC\n")
    assert session._collector({}) == {}


@pytest.fixture
def settings_of_the_jvm(no_jvm, no_java_options, monkeypatch, tmp_path):
    """Start a session: the settings its JVM would have, and whether another process could fill the cache meanwhile."""
    require_java()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def start(**config):
        started = []

        def start_jvm(settings, *, verbose):
            with (tmp_path / "cache" / "odradek" / "ivy" / ".lock").open("w") as lock, pytest.raises(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            started.append(settings)
            raise PipelineError("no further")

        monkeypatch.setattr(session, "_start_jvm", start_jvm)
        with pytest.raises(PipelineError, match="no further"):
            spark_session(config={name.replace("_", "."): value for name, value in config.items()})
        return started[0]

    return start


def test_ivy_keeps_the_connector_in_the_projects_own_cache_which_one_process_fills(settings_of_the_jvm, tmp_path):
    assert settings_of_the_jvm()["spark.jars.ivy"] == str(tmp_path / "cache" / "odradek" / "ivy")


def test_a_cache_of_ivy_that_the_user_chose_stays(settings_of_the_jvm, tmp_path):
    assert settings_of_the_jvm(spark_jars_ivy="/mine")["spark.jars.ivy"] == "/mine"
    (tmp_path / "spark-defaults.conf").write_text("spark.master local\nspark.jars.ivy  /shared\n")
    assert "spark.jars.ivy" not in settings_of_the_jvm()


class Jar:
    """A class, as Java tells where it is from."""

    def __init__(self, path):
        self._path = path

    def __getattr__(self, _name):
        return lambda: self

    def getPath(self):  # noqa: N802  # Java's name for it
        return self._path


def test_a_connector_of_another_version_than_spark_is_refused(spark, monkeypatch):
    monkeypatch.setattr(
        session, "_connector_class", lambda _spark: Jar("/ivy/org.apache.spark_spark-sql-kafka-0-10_2.13-3.5.1.jar")
    )
    assert re.search(rf"Spark is 4\.0\.0 and its Kafka connector is 3\.5\.1 .*use {CONNECTOR}$", refusal())


def test_a_connector_that_is_not_there_is_named(spark, monkeypatch):
    monkeypatch.setattr(session, "_CONNECTOR_CLASS", "org.apache.spark.sql.kafka010.NoSuchClass")
    assert refusal() == f"Spark's Kafka connector is missing: add --packages {CONNECTOR} to spark-submit"
