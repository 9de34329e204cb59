"""Prints every record of every topic, and goes on as more arrive: a Spark stream from a broker to the console.

python spark_read.py [BOOTSTRAP_SERVERS] [--once]

Needs Java 17 or newer and PySpark 4.0; Spark fetches its Kafka connector from Maven Central at the first run. With --once it
stops after what is there now.
"""

import fcntl
import os
import sys
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

# odradek's own, and filled by one program at a time: two that fill a cache of Ivy break each other's downloads.
IVY_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "odradek", "ivy")


def main(arguments: list[str]) -> None:
    """Stream from the broker given, or from localhost:9092."""
    once = "--once" in arguments
    servers = [argument for argument in arguments if not argument.startswith("--")] or ["localhost:9092"]
    builder = (
        SparkSession.builder.appName("odradek-read")
        .master("local[2]")
        .config("spark.jars.packages", f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}")
        .config("spark.jars.ivy", str(IVY_CACHE))
        .config("spark.ui.enabled", "false")
    )
    IVY_CACHE.mkdir(parents=True, exist_ok=True)
    with (IVY_CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        spark = builder.getOrCreate()
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers[0])
        .option("subscribePattern", "[^_].*")
        .option("startingOffsets", "earliest")
        .load()
    )
    text = records.select("topic", "partition", "offset", col("key").cast("string"), col("value").cast("string"))
    stream = text.writeStream.format("console").option("truncate", "false")
    query = (stream.trigger(availableNow=True) if once else stream).start()
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
