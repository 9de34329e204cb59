"""Some of the jobs in a process of its own: ``ADDRESS WAREHOUSE RECORDS_A_BATCH MASTER ingest,tables,findings [KEY=VALUE ...]``.

Says ``working`` when Spark is up, and ``done`` at the end. What comes last are Spark's configs. The findings go to a topic that
has the name of the warehouse's directory.
"""

import gc
import sys
from pathlib import Path

from odradek.pipeline.findings import FindingsTopic, build_findings
from odradek.pipeline.ingest import IngestOptions, ingest
from odradek.pipeline.session import spark_session
from odradek.pipeline.tables import build_tables

_CONFIG = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def main(address: str, warehouse: str, records: str, master: str, jobs: str, *settings: str) -> None:
    """Do it."""
    gc.enable()
    spark = spark_session(master, config=_CONFIG | dict(text.split("=", 1) for text in settings), verbose=False)
    # Of a task that fails Spark's own message may say next to nothing; its executor's says why.
    spark.sparkContext.setLogLevel("ERROR")
    print("working", flush=True)
    for job in jobs.split(","):
        if job == "ingest":
            ingest(spark, IngestOptions(address, warehouse, max_records_per_batch=int(records)))
        elif job == "tables":
            build_tables(spark, warehouse)
        else:
            build_findings(spark, warehouse, topic=FindingsTopic(Path(warehouse).name, address))
    print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
