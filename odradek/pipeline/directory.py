"""A directory of any file system that Spark supports, through Hadoop's classes, reached as PySpark reaches them."""

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from odradek.pipeline.errors import PipelineError


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
        """Whether the file or directory exists."""
        return bool(self._files.exists(self._path(name)))

    def read_text(self, name: str) -> str:
        """The whole text of a file."""
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
        """Rename a file or directory; False if the new name is taken."""
        return bool(self._files.rename(self._path(name), self._path(to)))

    def delete(self, path: Any) -> None:
        """Delete a path given by ``found``, with all that it contains."""
        self._files.delete(path, True)

    def remove(self, name: str) -> None:
        """Delete a file."""
        self._files.delete(self._path(name), False)

    def found(self, pattern: str) -> list[Any]:
        """The Hadoop paths that match this pattern."""
        return [status.getPath() for status in self._files.globStatus(self._path(pattern)) or []]

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.path}/{name}" if name else self.path)


def reason_of(failure: Py4JJavaError) -> str:
    """Java's reason, in one line."""
    cause = failure.java_exception
    lines = str(cause.getMessage()).splitlines()
    return f"{lines[0] if lines else ''} ({cause.getClass().getSimpleName()})"
