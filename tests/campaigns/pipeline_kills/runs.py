"""A job's process and how to kill it; and the comparison of two warehouses' rows."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.pipeline.history import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, History
from benchmarks.pipeline.lives import Shape
from benchmarks.pipeline.wire import Wire
from odradek.pipeline.findings import read_findings
from odradek.pipeline.schema import read_raw
from odradek.pipeline.tables import read_table
from odradek.pipeline.tables.schema import TABLES
from tests.broker_process import REPOSITORY, command_environment

# The history is old, and must stay unchanged across restarts of the broker.
SETTINGS = {
    "offsets.topic.num.partitions": 5,
    "transaction.state.log.num.partitions": 5,
    "log.cleaner.enable": "false",
    "offsets.retention.minutes": 2**31 - 1,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 2**31 - 1,
}
_TIMEOUT_S = 600.0
# Samples depend on their moment: they differ between runs, and so do lag and the findings derived from it.
_COMPARED = sorted(TABLES.keys() - {"lag", "end_offsets"})
_SAMPLED = ("lag", "stuck_partition", "never_committed")


def load(address: str, records: int) -> None:
    """Put a synthetic history into a broker."""
    with Wire(address) as wire:
        wire.wake_coordinators()
        counts = wire.partition_counts((OFFSETS_TOPIC, TRANSACTIONS_TOPIC))
        shape = Shape(records, groups=50, transactional_ids=100, session_timeout_ms=2**31 - 1)
        history = History(shape, counts[OFFSETS_TOPIC], counts[TRANSACTIONS_TOPIC])
        for batches in history.slices():
            wire.produce(batches)


class JobProcess:
    """The process of ``job`` and all that it starts; they are killed at the end of the ``with`` if they still run."""

    def __init__(
        self,
        address: str,
        warehouse: str,
        records_per_batch: int,
        master: str = "local[1]",
        jobs: str = "ingest,tables,findings",
        config: Mapping[str, str] | None = None,
    ) -> None:
        settings = [f"{key}={value}" for key, value in (config or {}).items()]
        command = [
            sys.executable,
            "-m",
            "tests.campaigns.pipeline_kills.job",
            address,
            warehouse,
            str(records_per_batch),
            master,
            jobs,
        ]
        command += settings
        self._process = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            # Of a cluster's workers too: elsewhere they take the first Python on their path.
            env=command_environment() | {"PYSPARK_PYTHON": sys.executable},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._began_s = 0.0

    def wait(self, timeout_s: float | None = None) -> float | None:
        """Wait until it is done, or this long; how long it has worked, None if it still does. Spark's start does not count."""
        if not self._began_s:
            assert self._read_line() == "working\n"
            self._began_s = time.monotonic()
        killer = threading.Event()
        deadline_s = time.monotonic() + (_TIMEOUT_S if timeout_s is None else timeout_s)
        while self._process.poll() is None and time.monotonic() < deadline_s:
            killer.wait(0.02)
        if self._process.poll() is None:
            assert timeout_s is not None, "the job does not end"
            return None
        assert self._process.returncode == 0, f"the job ended with {self._process.returncode}"
        return time.monotonic() - self._began_s

    def kill9(self) -> None:
        """End it and all that it has started, in the middle of whatever they do."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _read_line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error) -> None:
        if self._process.poll() is None:
            self.kill9()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _tables(spark: SparkSession, warehouse: str, address: str) -> dict[str, DataFrame]:
    """All that is compared, by its name."""
    tables = {name: read_table(spark, warehouse, name) for name in _COMPARED}
    findings = read_findings(spark, warehouse).where(~f.col("kind").isin(*_SAMPLED))
    return tables | {
        "raw": read_raw(spark, warehouse).drop("batch"),
        "findings": findings,
        "messages": _messages(spark, Path(warehouse).name, address),
    }


def _messages(spark: SparkSession, topic: str, address: str) -> DataFrame:
    settings = {"kafka.bootstrap.servers": address, "subscribe": topic}
    value = f.col("value").cast("string")
    messages = spark.read.format("kafka").options(**settings).load().select(f.col("key").cast("string"), value.alias("value"))
    return messages.where(~f.get_json_object("value", "$.kind").isin(*_SAMPLED))


def count_rows(spark: SparkSession, warehouse: str, address: str) -> dict[str, int]:
    """Of each table that is compared."""
    return {name: rows.count() for name, rows in _tables(spark, warehouse, address).items()}


def rows_that_differ(spark: SparkSession, one: str, other: str, address: str) -> Counter[str]:
    """For each table, the number of rows that are in one warehouse and not, or not as often, in the other."""
    ours, theirs = _tables(spark, one, address), _tables(spark, other, address)
    counts = {name: ours[name].exceptAll(theirs[name]).count() + theirs[name].exceptAll(ours[name]).count() for name in ours}
    return Counter({name: count for name, count in counts.items() if count})
