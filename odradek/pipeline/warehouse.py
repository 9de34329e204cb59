"""A warehouse: a directory of any file system that Spark supports, with the cluster's id in ``_cluster.json``."""

import json

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from odradek.pipeline.directory import Directory, reason_of
from odradek.pipeline.errors import PipelineError
from odradek.pipeline.places import no_warehouse
from odradek.pipeline.schema import CHECKPOINTS_DIR, RAW_DIR

CLUSTER_FILE = "_cluster.json"
_PROBE_FILE = "_writable"


class Warehouse:
    """The directory ``path``. Raises PipelineError if it cannot be used."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._directory = Directory(spark, path)
        self.path = self._directory.path

    def prepare(self, cluster_id: str, job: str) -> str:
        """Create the warehouse, or check that it is writable and this cluster's; the directory of the job's checkpoint."""
        try:
            self._directory.write_text(_PROBE_FILE, "")
            self._directory.remove(_PROBE_FILE)
            known = self.known_cluster()
            checkpoint = f"{CHECKPOINTS_DIR}/{job}"
            is_resumable = self._directory.exists(checkpoint) or not self._directory.exists(RAW_DIR)
            if known is None:
                self._directory.write_text(CLUSTER_FILE, json.dumps({"cluster_id": cluster_id}) + "\n")
        except Py4JJavaError as failure:
            reason = f"the warehouse {self.path} cannot be written to: {reason_of(failure)}"
            raise PipelineError(f"{reason}. Give the user that runs this the right to, or another --warehouse") from failure
        if known not in (None, cluster_id):
            reason = (
                f"the warehouse {self.path} and its checkpoints are of the cluster {known}, and this is the cluster {cluster_id}"
            )
            raise PipelineError(f"{reason}: give each cluster a --warehouse of its own")
        if not is_resumable:
            reason = f"the warehouse {self.path} has records, and no {checkpoint} that says how far they go"
            raise PipelineError(f"{reason}: restore that directory, or begin with another --warehouse")
        return f"{self.path}/{checkpoint}"

    def require_records(self) -> str:
        """The id of the cluster whose records it holds. Raises NoRecords before the first ingest."""
        known = self.known_cluster()
        if known is None:
            raise no_warehouse(self.path)
        return known

    def known_cluster(self) -> str | None:
        """The id of the cluster whose records it holds; None before the first ingest."""
        if not self._directory.exists(CLUSTER_FILE):
            return None
        text = self._directory.read_text(CLUSTER_FILE)
        try:
            return str(json.loads(text)["cluster_id"])
        except (ValueError, KeyError, TypeError) as failure:
            reason = f"{self.path}/{CLUSTER_FILE} does not say which cluster the warehouse is of"
            raise PipelineError(f"{reason}: restore it, or begin with another --warehouse") from failure
