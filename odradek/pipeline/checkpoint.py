"""What Spark's checkpoint of a stream says of a micro-batch, before it is read: from where to where it goes.

    offsets/N       where micro-batch N ends: a version, the query's settings, and last the source's offsets, each on a line
    sources/0/0     where the first one began: a version, and the source's offsets

The source is Spark's for Kafka; its offsets are ``{"topic": {"partition": offset, ...}, ...}``. What cannot be read is not known,
and nothing depends on its being so.
"""

import json

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from odradek.pipeline.directory import Directory


class Checkpoint:
    """The checkpoint in the directory ``path``."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._directory = Directory(spark, path)

    def offsets_in(self, batch: int) -> int | None:
        """How many offsets micro-batch ``batch`` goes over: as many as it has records, but for markers; None if not known."""
        end = self._total(f"offsets/{batch}")
        begin = self._total(f"offsets/{batch - 1}" if batch else "sources/0/0")
        return None if begin is None or end is None else end - begin

    def _total(self, name: str) -> int | None:
        try:
            text = self._directory.read_text(name)
            offsets = json.loads(text.rstrip().rpartition("\n")[2])
            return sum(int(offset) for of_topic in offsets.values() for offset in of_topic.values())
        except (Py4JJavaError, ValueError, AttributeError):
            return None
