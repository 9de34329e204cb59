"""The offset range of a micro-batch, from the checkpoint of Spark's stream, before the micro-batch is read.

    offsets/N       the end of micro-batch N: a version, the query's settings, and last the source's offsets, each on a line
    sources/0/0     the start of the first micro-batch: a version, and the source's offsets

The source is Spark's for Kafka. Its offsets are ``{"topic": {"partition": offset, ...}, ...}``. A file that cannot be read
gives an unknown range. Correctness does not depend on the range: it only sizes the work.
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
        """The number of offsets in micro-batch ``batch``: its records and its control records; None if unknown."""
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
