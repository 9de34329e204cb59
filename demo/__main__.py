"""A broker, a minute of client activity, the pipeline over the resulting logs, its findings and its report.

Run from the repository's root: ``python -m demo [--directory build/demo]``, or ``make demo``. The directory's content is
replaced. The exit status is 1 if a planted trouble was not found, or if an unplanted finding is as grave.
"""

import argparse
import logging
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import SparkSession

from demo.life import BROKER_SETTINGS, DURATION_S, PLANTED_HIGH, PLANTED_MEDIUM, THRESHOLDS, Life
from odradek.pipeline.errors import PipelineError
from odradek.pipeline.findings import Thresholds, build_findings, describe, read_findings
from odradek.pipeline.ingest import IngestOptions, ingest
from odradek.pipeline.report import write_report
from odradek.pipeline.session import spark_session
from odradek.pipeline.tables import build_tables
from tests.broker_process import BrokerProcess

_LINE_WIDTH = 80


def main() -> int:
    """Run the demo; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m demo", description="A minute of a broker's life, and what the pipeline finds in it."
    )
    parser.add_argument("--directory", type=Path, default=Path("build/demo"), help="where everything goes  [build/demo]")
    parser.add_argument("--master", default="local[2]", help="Spark's master  [local[2]]")
    arguments = parser.parse_args()
    try:
        complaints = demonstrate(arguments.directory, arguments.master)
    except PipelineError as failure:
        print(f"odradek: {failure}", file=sys.stderr)
        return 2
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


def demonstrate(directory: Path, master: str) -> list[str]:
    """Run all steps in this directory; the list of wrong findings."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    # Rebalances are the subject here, and clients log each of them.
    logging.disable(logging.CRITICAL)
    warehouse, report = str(directory / "warehouse"), directory / "report.html"
    progress = _Progress()
    with BrokerProcess(directory / "broker", settings=BROKER_SETTINGS) as broker:
        progress(f"odradek on {broker.address}")
        Life(broker.address).live(lambda seconds: progress(f"life: {seconds:.0f} of {DURATION_S:.0f} s"))
        progress("starting Spark")
        spark = spark_session(master, config={"spark.driver.memory": "1g"}, verbose=False)
        ingest(spark, IngestOptions(broker.address, warehouse), lambda done: progress(f"ingest: {done.records:,} records"))
    build_tables(spark, warehouse, progress)
    progress("findings")
    build_findings(spark, warehouse, Thresholds(**THRESHOLDS))
    write_report(spark, warehouse, str(report), progress)
    progress.end()
    print(*describe(spark, warehouse), sep="\n")
    print(f"\nThe report: {report.absolute()}")
    complaints = compare(_found(spark, warehouse, "high"), _found(spark, warehouse, "medium"))
    spark.stop()
    return complaints


def compare(high: Iterable[tuple[str, str]], medium: Iterable[tuple[str, str]]) -> list[str]:
    """Complaints about these findings, (kind, subject) each, a line each; none if exactly the planted trouble was found."""
    high, medium = set(high), set(medium)
    missed = sorted((PLANTED_HIGH - high) | (PLANTED_MEDIUM - medium))
    unplanted = sorted(high - PLANTED_HIGH)
    return [
        *(f"planted and not found: {kind} of {subject}" for kind, subject in missed),
        *(f"of severity high and not planted: {kind} of {subject}" for kind, subject in unplanted),
    ]


def _found(spark: SparkSession, warehouse: str, severity: str) -> list[tuple[str, str]]:
    rows = read_findings(spark, warehouse).where(f"severity = '{severity}'").select("kind", "subject").distinct()
    return [(row.kind, row.subject) for row in rows.collect()]


class _Progress:
    """Progress on stderr: on a terminal one line is rewritten, elsewhere each stage prints a line."""

    def __init__(self) -> None:
        self._stage = ""

    def __call__(self, line: str) -> None:
        stage = line.partition(":")[0]
        if sys.stderr.isatty():
            print(f"\r{line[:_LINE_WIDTH].ljust(_LINE_WIDTH)}", end="", flush=True, file=sys.stderr)
        elif stage != self._stage:
            print(stage, flush=True, file=sys.stderr)
        self._stage = stage

    def end(self) -> None:
        """End the line, before output goes to stdout."""
        if sys.stderr.isatty():
            print(f"\r{' ' * _LINE_WIDTH}\r", end="", flush=True, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
