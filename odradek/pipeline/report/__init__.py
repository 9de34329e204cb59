"""The report: one page of HTML that needs no network and shows the warehouse: findings, groups, lag, transactions, shares, tasks.

    data.py      the data, aggregated by Spark, each query with a bound
    figures.py   the drawings, with plotly
    page.py      HTML around them; page.css, page.js

The page's size is bounded too: about 5 MB, most of it plotly's own code, and at most twice that.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from odradek.pipeline.errors import PipelineError, check_report_file
from odradek.pipeline.findings import read_findings
from odradek.pipeline.findings.finding import Read
from odradek.pipeline.report import data, figures
from odradek.pipeline.report.page import APPLICATION_COLUMNS, SHARE_PARTITION_COLUMNS, TASK_COLUMNS, Page
from odradek.pipeline.tables import read_table
from odradek.pipeline.warehouse import Warehouse

__all__ = ["compose", "write_report"]


def write_report(spark: SparkSession, warehouse: str, out: str, on_progress: Callable[[str], None] = lambda _: None) -> int:
    """Write the report of a warehouse to the file ``out``, and return its size in bytes. Raises PipelineError."""
    path = Path(out)
    check_report_file(out)
    read = cache(lambda name: read_table(spark, warehouse, name))
    cluster_id = Warehouse(spark, warehouse).require_records()
    html = compose(read, read_findings(spark, warehouse), cluster_id, on_progress)
    try:
        return path.write_bytes(html.encode())
    except OSError as failure:
        raise PipelineError(f"cannot write the report to {out}: {failure.strerror}. Choose another --out") from failure


def compose(read: Read, found: DataFrame, cluster_id: str | None, on_progress: Callable[[str], None] = lambda _: None) -> str:
    """Return the page of these tables and findings."""
    page = Page()
    on_progress("report: findings")
    span, counted = data.span_and_counts(read)
    severities = {row.severity: row["count"] for row in found.groupBy("severity").count().collect()}
    page.head(cluster_id, span, counted, severities)
    page.findings(*data.findings(found))

    on_progress("report: groups")
    _add_groups(page, read, found, span)

    on_progress("report: lag")
    page.title("Lag")
    page.text("All partitions of a group together; the groups that were farthest behind.")
    page.figure(figures.lag(data.lag_of_groups(read, span), span))

    on_progress("report: transactions")
    page.title("Transactions")
    page.text("How long they took; a point is the slowest of those that ended about then.")
    page.figure(figures.transactions(data.transactions(read, span), span))
    page.table(data.applications(read), APPLICATION_COLUMNS, "applications")

    on_progress("report: share groups")
    shares = data.share_partitions(read)
    if shares.of:
        page.title("Share groups")
        page.text("Records whose deliveries have ended, by share partition. Returned ones were released, or their locks expired.")
        page.table(shares, SHARE_PARTITION_COLUMNS, "share partitions")

    on_progress("report: streams groups")
    tasks = data.tasks(read)
    if tasks.of:
        page.title("Streams groups")
        page.text("Active tasks and their moves between members. A process without a standby has to restore the state.")
        page.table(tasks, TASK_COLUMNS, "tasks")
    return page.html()


def _add_groups(page: Page, read: Read, found: DataFrame, span: data.Span) -> None:
    shown = data.groups(read, found)
    names = [row.group for row in shown.rows.itertuples()]
    newest = data.generations(read, names, span).cache()
    of_groups = {
        "ticks": data.ticks(read, newest),
        "segments": data.segments(read, newest),
        "moves": data.moves(read, names),
        "lag": data.lag_of_partitions(read, names, span),
    }
    newest.unpersist()
    page.title("Groups")
    for row in shown.rows.itertuples():
        mine = {name: rows[rows["group"] == row.group] for name, rows in of_groups.items()}
        drawn = []
        if not mine["ticks"].empty:
            drawn.append(("Generations and members", figures.members(mine["ticks"], mine["segments"], span)))
        if not mine["moves"].empty:
            drawn.append(("Partitions that changed hands", figures.moves(mine["moves"], span)))
        if not mine["lag"].empty:
            drawn.append(("Lag of the partitions farthest behind", figures.lag(mine["lag"], span)))
        page.group(row, drawn, mine["ticks"].dropna(subset="why"))
    if shown.of > len(names):
        page.text(f"And {shown.of - len(names):,} more groups, with less to tell.")
