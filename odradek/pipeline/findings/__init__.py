"""Findings: what of a cluster's history its operator wants to be told, each a row of ``FINDING`` in ``<warehouse>/findings``.

They are made of the tables alone, by Spark SQL, and anew at each pass: the same tables give the same findings, ids included,
in whatever passes they came. So a pass that was cut short is mended by the next, and ``findings`` is replaced, not added to.
Nothing here asks what time it is: now is the newest time in the tables.

    rows.py          the row, and what detectors share      groups.py        rebalances, members, assignments
    thresholds.py    from where on it is one                offsets.py       lag, and what stands still
    sink.py          messages of them, each sent once       transactions.py  hanging, slow, aborted
"""

from functools import cache, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from odradek.pipeline.findings.groups import flapping_members, rebalance_figures, rebalance_storms, uneven_assignments
from odradek.pipeline.findings.offsets import backward_commits, lag_figures, stuck_partitions
from odradek.pipeline.findings.rows import FINDING, HIGH, LOW, MEDIUM, Read, read_findings
from odradek.pipeline.findings.sink import FindingsTopic, send_findings
from odradek.pipeline.findings.thresholds import Thresholds
from odradek.pipeline.findings.transactions import aborted_shares, hanging_transactions, slow_transactions
from odradek.pipeline.schema import FINDINGS_DIR
from odradek.pipeline.tables import read_table
from odradek.pipeline.warehouse import Warehouse

__all__ = [
    "DETECTORS",
    "FINDING",
    "HIGH",
    "LOW",
    "MEDIUM",
    "FindingsTopic",
    "Thresholds",
    "build_findings",
    "describe",
    "detect",
    "read_findings",
]

_DESCRIBED = 50

DETECTORS = (
    rebalance_figures,
    rebalance_storms,
    flapping_members,
    uneven_assignments,
    stuck_partitions,
    lag_figures,
    backward_commits,
    hanging_transactions,
    slow_transactions,
    aborted_shares,
)


def detect(read: Read, thresholds: Thresholds) -> DataFrame:
    """All that there is to be found in these tables."""
    return reduce(DataFrame.unionByName, (detector(read, thresholds) for detector in DETECTORS))


def describe(spark: SparkSession, warehouse: str) -> list[str]:
    """What was found of high and medium severity as lines for a terminal, the gravest first, then the newest."""
    grave = read_findings(spark, warehouse).where(f.col("severity").isin(HIGH, MEDIUM))
    when = f.concat_ws(" to ", *(f.date_format(time, "yyyy-MM-dd HH:mm:ss") for time in ("from_time", "to_time")))
    line = f.format_string("%-6s  %-20s  %-20s  %s  %s", "severity", "kind", "subject", when, "evidence")
    rows = grave.orderBy(f.col("severity") != HIGH, f.desc("from_time"), "kind", "subject", "id").select(line.alias("line"))
    lines = [row.line for row in rows.limit(_DESCRIBED).collect()]
    left = grave.count() - len(lines)
    return [*lines, f"and {left:,} more"] if left else lines


def build_findings(
    spark: SparkSession, warehouse: str, thresholds: Thresholds | None = None, topic: FindingsTopic | None = None
) -> int:
    """Put what is to be found in the warehouse's tables in place of what was found before, and send what is new of it.

    How many messages were sent. Raises PipelineError.
    """
    Warehouse(spark, warehouse).require_records()
    read = cache(lambda name: read_table(spark, warehouse, name))
    found = detect(read, thresholds or Thresholds())
    found.coalesce(1).write.mode("overwrite").parquet(f"{warehouse}/{FINDINGS_DIR}")
    return 0 if topic is None else send_findings(spark, warehouse, read, topic)
