"""Findings about streams groups: tasks that move back and forth.

    kind           severity                                   within the subject, a group
    moving_task    high if a task has state, and a process    tasks that move together
                   without a standby got it; else medium

A task returns if it moves to the process that it had come from. Moves between members of one process do not count: they share the
state on its disk. A process without a standby has to restore all state that its disk lacks from the changelogs.

An instance that comes and goes takes several tasks along each time. These are one finding.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from odradek.pipeline.findings.finding import HIGH, MEDIUM, Read, Thresholds, episodes, findings_of

_TASK = ("group", "subtopology", "partition")
_TASKS_NAMED = 20


def moving_tasks(read: Read, thresholds: Thresholds) -> DataFrame:
    """Find active tasks that returned ``task_returns`` times or more within ``task_window_s``."""
    in_order = Window.partitionBy(*_TASK).orderBy("record_partition", "record_offset")
    moves = read("task_moves").where("from_process != to_process")
    returns = moves.withColumn("came_from", f.lag("from_process").over(in_order)).where("to_process = came_from")
    found = episodes(returns.select(*_TASK, "at"), _TASK, window_s=thresholds.task_window_s, at_least=thresholds.task_returns)
    found = found.withColumnRenamed("events", "returns")
    during = returns.select(*_TASK, "at", "from_process", "to_process", "is_stateful", "had_standby", "away_ms")
    during = during.join(found, list(_TASK)).where(f.col("at").between(f.col("from_time"), f.col("to_time")))
    # A subtopology of which the topology is not known may have state.
    has_to_restore = f.coalesce("is_stateful", f.lit(True)) & ~f.col("had_standby")
    names = f.collect_set(f.concat_ws("_", "subtopology", "partition"))
    together = during.groupBy("group", "from_time").agg(
        f.max("to_time").alias("to_time"),
        f.size(names).alias("tasks"),
        f.slice(f.array_sort(names), 1, _TASKS_NAMED).alias("names"),
        f.max("returns").alias("returns"),
        f.array_sort(f.array_distinct(f.flatten(f.collect_set(f.array("from_process", "to_process"))))).alias("processes"),
        f.count(f.when(has_to_restore, 1)).alias("to_restore"),
        f.max("away_ms").alias("away_ms_max"),
    )
    severity = f.when(f.col("to_restore") > 0, HIGH).otherwise(MEDIUM)
    evidence = ("tasks", "names", "returns", "processes", "to_restore", "away_ms_max")
    return findings_of(together, "moving_task", severity, subject="group", evidence=evidence)
