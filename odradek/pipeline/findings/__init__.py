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

from odradek.pipeline.findings.groups import flapping_members, rebalance_figures, rebalance_storms, uneven_assignments
from odradek.pipeline.findings.offsets import backward_commits, lag_figures, stuck_partitions
from odradek.pipeline.findings.rows import FINDING, HIGH, LOW, MEDIUM, Read, read_findings
from odradek.pipeline.findings.sink import FindingsTopic, send_findings
from odradek.pipeline.findings.thresholds import Thresholds
from odradek.pipeline.findings.transactions import aborted_shares, hanging_transactions, slow_transactions
from odradek.pipeline.schema import FINDINGS_DIR
from odradek.pipeline.tables import read_table

__all__ = [
    "DETECTORS",
    "FINDING",
    "HIGH",
    "LOW",
    "MEDIUM",
    "FindingsTopic",
    "Thresholds",
    "build_findings",
    "detect",
    "read_findings",
]

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


def build_findings(
    spark: SparkSession, warehouse: str, thresholds: Thresholds | None = None, topic: FindingsTopic | None = None
) -> int:
    """Put what is to be found in the warehouse's tables in place of what was found before, and send what is new of it.

    How many messages were sent. Raises PipelineError.
    """
    read = cache(lambda name: read_table(spark, warehouse, name))
    found = detect(read, thresholds or Thresholds())
    found.coalesce(1).write.mode("overwrite").parquet(f"{warehouse}/{FINDINGS_DIR}")
    return 0 if topic is None else send_findings(spark, warehouse, read, topic)
