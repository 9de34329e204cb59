"""The Spark session of a process of tests: two cores, small shuffles, no web page, the Kafka connector from Maven Central.

A session costs seconds, and where the connector is not in Ivy's cache yet a download of some 60 MB besides; so Spark's tests run
in one process, the pipeline's in another, and either has one.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from benchmarks.load_tool import MissingTool
from odradek.pipeline.ivy_cache import ivy_cache
from tests.needed import missing, needed

OLDEST_JAVA = 17
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"


def require_java() -> None:
    """Raise MissingTool where there is no Java that Spark runs on."""
    java = needed("java")
    printed = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    version = re.search(r' version "(\d+)', printed)
    if version is None or int(version[1]) < OLDEST_JAVA:
        found = f"is Java {version[1]}" if version else "does not run"
        raise MissingTool(missing("java", f"Spark needs Java {OLDEST_JAVA} or newer, and {java} {found}"))


def start_session(warehouse: Path) -> SparkSession:
    """A session that keeps what it must keep under ``warehouse``."""
    # Spark looks the machine's name up otherwise, and warns about what it finds.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Its workers would be of the first Python on the path, which need not have what the tests have.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.jars.packages": CONNECTOR,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        # What a process of minutes wants: start fast, compile lightly, and leave a core to the broker.
        # With one level of compilation the JVM has 48 MB for what it has compiled, and the tests fill them.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(warehouse),
        # To compile what Spark would generate takes longer than these few records: 80 s of the tables' passes, and 59 without.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # Each result comes by a socket that takes one connection, and is closed after 15 s without one.
        "spark.python.authenticate.socketTimeout": "2m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Producers outlive the write that made them; those of a broker that has ended would go on looking for it.
        "spark.kafka.producer.cache.timeout": "5s",
        "spark.kafka.producer.cache.evictorThreadRunInterval": "5s",
    }
    builder = SparkSession.builder.master("local[2]").appName("odradek-tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        with ivy_cache() as ivy:
            return builder.config("spark.jars.ivy", str(ivy)).getOrCreate()
    except Exception as error:  # noqa: BLE001  # what it is depends on where in two languages it went wrong
        pytest.fail(f"Spark did not start (it fetches {CONNECTOR} from Maven Central at the first run): {error}", pytrace=False)
