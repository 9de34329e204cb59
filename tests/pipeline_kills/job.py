"""Some of the jobs in a process of its own: ``ADDRESS WAREHOUSE RECORDS_A_BATCH MASTER ingest,tables [KEY=VALUE ...]``.

Says ``working`` when Spark is up, and ``done`` at the end. What comes last are Spark's configs.
"""

import gc
import sys

from odradek.pipeline.ingest import IngestOptions, ingest
from odradek.pipeline.session import spark_session
from odradek.pipeline.tables import build_tables

_CONFIG = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def main(address: str, warehouse: str, records: str, master: str, jobs: str, *settings: str) -> None:
    """Do it."""
    gc.enable()
    spark = spark_session(master, config=_CONFIG | dict(text.split("=", 1) for text in settings), verbose=False)
    print("working", flush=True)
    for job in jobs.split(","):
        if job == "ingest":
            ingest(spark, IngestOptions(address, warehouse, max_records_per_batch=int(records)))
        else:
            build_tables(spark, warehouse)
    print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
