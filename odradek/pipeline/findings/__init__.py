"""Findings: events in a cluster's history that its operator should know about. ``<warehouse>/findings`` has rows of ``FINDING``.

Spark SQL computes all of them at each pass, from the tables alone. The same tables give the same findings and the same ids,
no matter which passes built them. Each pass replaces ``findings``, so the next pass repairs an interrupted one. No detector
reads a clock: "now" is the newest time in the tables.

    finding.py       limits, the row, and helpers           groups.py        rebalances, members, assignments
    sink.py          findings as messages, each sent once   offsets.py       lag, partitions that stand still
                                                            shares.py        poison records, records that are held
                                                            streams.py       tasks that move back and forth
                                                            transactions.py  hanging, slow, aborted
"""

from functools import cache, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from odradek.pipeline.findings.finding import FINDING, HIGH, LOW, MEDIUM, Read, Thresholds, read_findings
from odradek.pipeline.findings.groups import flapping_members, rebalance_figures, rebalance_storms, uneven_assignments
from odradek.pipeline.findings.offsets import backward_commits, lag_figures, never_committed, stuck_partitions
from odradek.pipeline.findings.shares import archived_records, held_records, redelivered_records
from odradek.pipeline.findings.sink import FindingsTopic, send_findings
from odradek.pipeline.findings.streams import moving_tasks
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
    never_committed,
    lag_figures,
    backward_commits,
    hanging_transactions,
    slow_transactions,
    aborted_shares,
    archived_records,
    redelivered_records,
    held_records,
    moving_tasks,
)


def detect(read: Read, thresholds: Thresholds) -> DataFrame:
    """Return all findings in these tables."""
    return reduce(DataFrame.unionByName, (detector(read, thresholds) for detector in DETECTORS))


def describe(spark: SparkSession, warehouse: str) -> list[str]:
    """Return the findings of high and medium severity as lines for a terminal: the gravest first, then the newest."""
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
    """Replace the warehouse's findings by those of the present tables, and send the new ones.

    Return the number of messages sent. Raises PipelineError.
    """
    Warehouse(spark, warehouse).require_records()
    read = cache(lambda name: read_table(spark, warehouse, name))
    found = detect(read, thresholds or Thresholds())
    found.coalesce(1).write.mode("overwrite").parquet(f"{warehouse}/{FINDINGS_DIR}")
    return 0 if topic is None else send_findings(spark, warehouse, read, topic)
