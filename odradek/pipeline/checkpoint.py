"""What Spark's checkpoint of a stream says of a micro-batch, before it is read: from where to where it goes.

    offsets/N       where micro-batch N ends: a version, the query's settings, and last the source's offsets, each on a line
    sources/0/0     where the first one began: a version, and the source's offsets

The source is Spark's for Kafka; its offsets are ``{"topic": {"partition": offset, ...}, ...}``. What cannot be read is not known,
and nothing depends on its being so.
"""

import json
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession


class Checkpoint:
    """The checkpoint in the directory ``path``."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        # How PySpark itself talks to it.
        jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
        jsc: Any = spark.sparkContext._jsc  # noqa: SLF001
        self._jvm, self._path = jvm, path
        self._files = jvm.org.apache.hadoop.fs.Path(path).getFileSystem(jsc.hadoopConfiguration())

    def offsets_in(self, batch: int) -> int | None:
        """How many offsets micro-batch ``batch`` goes over: as many as it has records, but for markers; None if not known."""
        end = self._total(f"offsets/{batch}")
        begin = self._total(f"offsets/{batch - 1}" if batch else "sources/0/0")
        return None if begin is None or end is None else end - begin

    def _total(self, name: str) -> int | None:
        try:
            stream = self._files.open(self._jvm.org.apache.hadoop.fs.Path(f"{self._path}/{name}"))
            try:
                text = str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()
            offsets = json.loads(text.rstrip().rpartition("\n")[2])
            return sum(int(offset) for of_topic in offsets.values() for offset in of_topic.values())
        except (Py4JJavaError, ValueError, AttributeError):
            return None
