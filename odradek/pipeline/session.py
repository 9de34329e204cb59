"""The Spark session that the jobs run in: Spark's own Kafka connector, UTC, state in RocksDB.

Under ``spark-submit`` the JVM exists already, with the master, memory and packages that the submitter chose. Otherwise a JVM is
started here: it runs Spark itself, or is the driver of the cluster that ``master`` names, and fetches the connector from Maven
Central at its first run, into the project's own cache. A mismatch (no Java, an old Java, different versions of Spark and
connector) is reported before any work is done.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from odradek.pipeline.errors import PipelineError, root_cause
from odradek.pipeline.ivy_cache import ivy_cache

CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
"""The connector must have Spark's version: another version does not load, or fails when it is first used."""

_CONNECTOR_CLASS = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
_ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_OLDEST_JAVA = 17
# In the current directory of the JVM; no Spark config can change that.
_ARTIFACTS = "artifacts"
_INSTALL_JAVA = "on Debian or Ubuntu: sudo apt-get install -y --no-install-recommends default-jre-headless"
_TIMEOUT_S = 30
# spark-submit runs this code as its program, and names its JVM's port in this variable.
_GATEWAY = "PYSPARK_GATEWAY_PORT"
# Java and Spark's launcher take options for a JVM from these variables, too.
_JAVA_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "PYSPARK_SUBMIT_ARGS")
_COLLECTOR = "-XX:+UseParallelGC -XX:NewRatio=4"
_CHOICE_OF_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")


def spark_session(master: str | None = None, *, config: dict[str, str] | None = None, verbose: bool = True) -> SparkSession:
    """Return a new session with the jobs' settings, or the present one with these settings. Raises PipelineError.

    ``master`` None leaves the choice to Spark's own configuration, which is ``local[*]`` by default. ``config`` takes
    precedence over all other settings. ``verbose`` shows the output of a JVM that is started here.
    """
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.streaming.stateStore.providerClass": _ROCKS_DB,
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.appName("odradek pipeline")
    has_artifacts = Path(_ARTIFACTS).exists()
    is_first = SparkContext._gateway is None and _GATEWAY not in os.environ  # noqa: SLF001  # the only sign of a running JVM
    if is_first:
        settings |= {"spark.jars.packages": CONNECTOR, "spark.ui.enabled": "false"} | _at_home(master, config or {})
        _require_java()
        with ivy_cache() as ivy:
            if not re.search(r"^\s*spark\.jars\.ivy\b", _spark_defaults(), re.MULTILINE):
                settings["spark.jars.ivy"] = str(ivy)
            _start_jvm(settings | (config or {}), verbose=verbose)
    if master:
        builder = builder.master(master)
    for key, value in (settings | (config or {})).items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except Exception as failure:
        raise PipelineError(f"Spark did not start with master {master or '(default)'}: {root_cause(failure)}") from failure
    if is_first and not has_artifacts:
        _remove_artifacts_at_exit(spark)
    if is_first and not verbose:
        spark.sparkContext.setLogLevel("OFF")
    _require_connector(spark)
    return spark


@contextmanager
def configured(spark: SparkSession, configs: Mapping[str, str]) -> Iterator[None]:
    """Set these configs for the duration of the ``with``. A query started meanwhile keeps them."""
    before = {key: str(spark.conf.get(key)) for key in configs}
    for key, value in configs.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def _remove_artifacts_at_exit(spark: SparkSession) -> None:
    """Have the JVM remove Spark 4's directory of session artifacts at its exit, if it is empty: Spark leaves it there."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001  # how PySpark itself talks to it
    jvm.java.io.File(_ARTIFACTS).deleteOnExit()


def _at_home(master: str | None, config: Mapping[str, str]) -> dict[str, str]:
    if not (master or "local").startswith("local"):
        return {}
    # Otherwise Spark looks up the machine's name, and warns about the result.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Spark's workers are Python processes, and the first Python on the path need not have this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", **_collector(config)}


def _collector(config: Mapping[str, str]) -> dict[str, str]:
    """Return the garbage collector of a JVM that runs Spark itself, unless the user chose one: Java refuses two.

    Java's default from two cores on, G1, makes the same work take a fifth longer. The old generation is sized for the memory
    that Spark keeps (spark.memory.fraction, 0.6 of the heap) and the objects that live beside it.
    """
    said = [*config.values(), *(os.environ.get(name, "") for name in _JAVA_OPTIONS), _spark_defaults()]
    if any(map(_CHOICE_OF_COLLECTOR.search, said)):
        return {}
    return {"spark.driver.defaultJavaOptions": _COLLECTOR}


def _spark_defaults() -> str:
    """Return the user's own configs for every Spark. Those given at a start have precedence."""
    home = os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home(), "conf")  # type: ignore[no-untyped-call]  # pyspark's
    defaults = Path(home, "spark-defaults.conf")
    return defaults.read_text(encoding="utf-8", errors="replace") if defaults.is_file() else ""


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home, "bin", "java")) if home else "java"
    try:
        told = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)  # noqa: S603  # the user's own Java
        printed = told.stderr
    except (OSError, subprocess.TimeoutExpired):
        printed = ""
    version = re.search(r' version "(\d+)', printed)
    if version is None or int(version[1]) < _OLDEST_JAVA:
        found = f"{command} is Java {version[1]}" if version else f"{command} does not run"
        raise PipelineError(
            f"Spark needs Java {_OLDEST_JAVA} or newer, and {found}: install it ({_INSTALL_JAVA}) or set JAVA_HOME"
        )


def _start_jvm(settings: dict[str, str], *, verbose: bool) -> None:
    """Start the JVM as Spark itself would, except for its output: Ivy and the launcher ignore log levels."""
    conf = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        conf.set(key, value)
    output: dict[str, Any] = {} if verbose else {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        gateway = launch_gateway(conf, output)  # type: ignore[no-untyped-call]  # pyspark has no types for it
    except PySparkRuntimeError as failure:
        reason = f"Spark did not start; its first run fetches {CONNECTOR} from Maven Central: check the network."
        raise PipelineError(f"{reason} --verbose shows its output") from failure
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001  # the only way to hand it a gateway


def _require_connector(spark: SparkSession) -> None:
    """Raise PipelineError unless PySpark, Spark and the connector have the same version."""
    if spark.version != pyspark.__version__:
        reason = f"PySpark is {pyspark.__version__} and Spark is {spark.version}"
        raise PipelineError(
            f"{reason}: pip install pyspark=={spark.version}, or unset SPARK_HOME ({os.environ.get('SPARK_HOME')})"
        )
    location = _connector_class(spark).getProtectionDomain().getCodeSource().getLocation()
    jar = str(location.getPath()).rsplit("/", 1)[-1]
    version = re.search(r"_([\d.]+)-([\w.-]+)\.jar$", jar)
    if version is not None and version[2] != spark.version:
        reason = f"Spark is {spark.version} and its Kafka connector is {version[2]} ({jar})"
        raise PipelineError(f"{reason}: their versions must be the same; use {CONNECTOR}")


def _connector_class(spark: SparkSession) -> Any:
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001  # how PySpark itself talks to it
    try:
        return jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(_CONNECTOR_CLASS)
    except Py4JJavaError as failure:
        raise PipelineError(f"Spark's Kafka connector is missing: add --packages {CONNECTOR} to spark-submit") from failure
