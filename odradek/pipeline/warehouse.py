"""A warehouse: a directory of any file system that Spark supports, with the cluster's id in ``_cluster.json``.

The directory is reached through Hadoop's classes, as PySpark reaches them.
"""

import json
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from odradek.pipeline.errors import PipelineError, no_warehouse
from odradek.pipeline.schema import CHECKPOINTS_DIR, RAW_DIR


class Directory:
    """The directory ``path``, which need not exist. Files in it are named relative to it; ``""`` names the directory itself.

    Raises PipelineError if Spark does not support the file system. A refusal of the file system is a Py4JJavaError.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path.rstrip("/") or "/"
        jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
        jsc: Any = spark.sparkContext._jsc  # noqa: SLF001
        self._jvm = jvm
        try:
            self._files = self._path("").getFileSystem(jsc.hadoopConfiguration())
        except Py4JJavaError as failure:
            raise PipelineError(f"Spark has no file system for the warehouse {path}: {reason_of(failure)}") from failure

    def exists(self, name: str) -> bool:
        """Return whether the file or directory exists."""
        return bool(self._files.exists(self._path(name)))

    def read_text(self, name: str) -> str:
        """Return the whole text of a file."""
        stream = self._files.open(self._path(name))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write_text(self, name: str, text: str) -> None:
        """Create or replace a file with this text."""
        stream = self._files.create(self._path(name), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def rename(self, name: str, to: str) -> bool:
        """Rename a file or directory. Return False if the new name is taken."""
        return bool(self._files.rename(self._path(name), self._path(to)))

    def delete(self, path: Any) -> None:
        """Delete a path given by ``found``, with all its content."""
        self._files.delete(path, True)

    def remove(self, name: str) -> None:
        """Delete a file."""
        self._files.delete(self._path(name), False)

    def found(self, pattern: str) -> list[Any]:
        """Return the Hadoop paths that match this pattern."""
        return [status.getPath() for status in self._files.globStatus(self._path(pattern)) or []]

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.path}/{name}" if name else self.path)


def reason_of(failure: Py4JJavaError) -> str:
    """Return Java's reason, in one line."""
    cause = failure.java_exception
    lines = str(cause.getMessage()).splitlines()
    return f"{lines[0] if lines else ''} ({cause.getClass().getSimpleName()})"


CLUSTER_FILE = "_cluster.json"
_PROBE_FILE = "_writable"


class Warehouse:
    """The directory ``path``. Raises PipelineError if it cannot be used."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._directory = Directory(spark, path)
        self.path = self._directory.path

    def prepare(self, cluster_id: str, job: str) -> str:
        """Create the warehouse, or check that it is writable and this cluster's. Return the directory of the job's checkpoint."""
        try:
            self._directory.write_text(_PROBE_FILE, "")
            self._directory.remove(_PROBE_FILE)
            known = self.known_cluster()
            checkpoint = f"{CHECKPOINTS_DIR}/{job}"
            is_resumable = self._directory.exists(checkpoint) or not self._directory.exists(RAW_DIR)
            if known is None:
                self._directory.write_text(CLUSTER_FILE, json.dumps({"cluster_id": cluster_id}) + "\n")
        except Py4JJavaError as failure:
            reason = f"cannot write to the warehouse {self.path}: {reason_of(failure)}"
            raise PipelineError(f"{reason}. Give your user write permission, or choose another --warehouse") from failure
        if known not in (None, cluster_id):
            reason = f"the warehouse {self.path} and its checkpoints belong to cluster {known}, but this is cluster {cluster_id}"
            raise PipelineError(f"{reason}: use a separate --warehouse for each cluster")
        if not is_resumable:
            reason = f"the warehouse {self.path} has records, but its checkpoint {checkpoint} is missing"
            raise PipelineError(f"{reason}: restore that directory, or start with a new --warehouse")
        return f"{self.path}/{checkpoint}"

    def require_records(self) -> str:
        """Return the id of the cluster whose records it holds. Raises NoRecords before the first ingest."""
        known = self.known_cluster()
        if known is None:
            raise no_warehouse(self.path)
        return known

    def known_cluster(self) -> str | None:
        """Return the id of the cluster whose records it holds; None before the first ingest."""
        if not self._directory.exists(CLUSTER_FILE):
            return None
        text = self._directory.read_text(CLUSTER_FILE)
        try:
            return str(json.loads(text)["cluster_id"])
        except (ValueError, KeyError, TypeError) as failure:
            reason = f"{self.path}/{CLUSTER_FILE} has no cluster id"
            raise PipelineError(f"{reason}: restore the file, or start with a new --warehouse") from failure
