"""The Spark session that the jobs run in: Spark's own Kafka connector, UTC, state in RocksDB.

Under ``spark-submit`` there is a JVM already, whose master, memory and packages are what the submitter chose; else one is
started, here or as a driver of the cluster that ``master`` names, and fetches the connector from Maven Central at its first run.
"""

import os

import pyspark
from pyspark.sql import SparkSession

CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
"""Of Spark's own version: one of another does not load, or fails when it is first used."""

_ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def spark_session(
    master: str | None = None,
    *,
    app_name: str = "odradek pipeline",
    shuffle_partitions: int = 4,
    config: dict[str, str] | None = None,
) -> SparkSession:
    """The session, or the one there is already, with the jobs' settings.

    ``master`` None leaves it to Spark's own configuration, which says ``local[*]`` unless told otherwise; ``config`` weighs most.
    """
    settings = {
        "spark.jars.packages": CONNECTOR,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        "spark.sql.streaming.stateStore.providerClass": _ROCKS_DB,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if (master or "local").startswith("local"):
        # Spark looks the machine's name up otherwise, and warns about what it finds.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    builder = SparkSession.builder.appName(app_name)
    if master:
        builder = builder.master(master)
    for key, value in (settings | (config or {})).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
