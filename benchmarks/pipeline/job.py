"""Jobs in a process of their own: ``python -m benchmarks.pipeline.job ADDRESS WAREHOUSE MASTER`` runs those named on stdin.

Spark's start and then each job print a line of JSON on stdout: name, seconds, result.
"""

import gc
import json
import sys
import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from odradek.pipeline.findings import build_findings, read_findings
from odradek.pipeline.ingest import IngestOptions, ingest
from odradek.pipeline.session import spark_session
from odradek.pipeline.tables import build_tables

# As little as a laptop has to spare, and the same for all runs.
DRIVER_MEMORY = "2g"


def _ingest(spark: SparkSession, address: str, warehouse: str) -> dict[str, int]:
    done = ingest(spark, IngestOptions(address, warehouse))
    return {"records": done.records, "quarantined": done.quarantined, "batches": done.batches}


def _tables(spark: SparkSession, _address: str, warehouse: str) -> dict[str, int]:
    return {"records": build_tables(spark, warehouse).records}


def _findings(spark: SparkSession, _address: str, warehouse: str) -> dict[str, int]:
    build_findings(spark, warehouse)
    return {"findings": read_findings(spark, warehouse).count()}


JOBS: dict[str, Callable[[SparkSession, str, str], dict[str, int]]] = {
    "ingest": _ingest,
    "tables": _tables,
    "findings": _findings,
}


def main(address: str, warehouse: str, master: str) -> None:
    """Run jobs until the names end."""
    gc.enable()
    began_s = time.perf_counter()
    spark = spark_session(master, config={"spark.driver.memory": DRIVER_MEMORY}, verbose=False)
    print(json.dumps({"job": "start", "seconds": time.perf_counter() - began_s}), flush=True)
    for line in sys.stdin:
        name = line.strip()
        began_s = time.perf_counter()
        told = JOBS[name](spark, address, warehouse)
        print(json.dumps({"job": name, "seconds": time.perf_counter() - began_s, **told}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
