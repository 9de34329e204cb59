"""See the package. Options: ``--brokers odradek,kafka``, ``--seed``, ``--steps`` of life."""

import argparse
import gc
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from odradek.pipeline.ingest import IngestOptions, ingest
from odradek.pipeline.session import spark_session
from odradek.pipeline.tables import build_tables
from tests.broker_process import BrokerProcess
from tests.campaigns.kafka_tools.kafka_broker import KafkaRuns
from tests.campaigns.pipeline_differential import formatters, streams
from tests.campaigns.pipeline_differential.answers import Answers, differences, table_rows
from tests.campaigns.pipeline_differential.life import Life

SETTINGS = {
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.num.partitions": "5",
    "group.initial.rebalance.delay.ms": "0",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    # On a busy machine the comparison takes more than five minutes: nothing may be written meanwhile.
    "share.coordinator.cold.partition.snapshot.interval.ms": "3600000",
    "share.coordinator.state.topic.prune.interval.ms": "3600000",
    **streams.SETTINGS,
}


def main() -> int:
    """Both brokers in turn; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.pipeline_differential", description=__doc__)
    parser.add_argument("--brokers", default="odradek,kafka", help="comma-separated (default: odradek,kafka)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=150, help="of life (default: 150)")
    chosen = parser.parse_args()
    gc.enable()
    spark = spark_session("local[1]", config={"spark.driver.memory": "1g"}, verbose=False)
    differ = 0
    for name in chosen.brokers.split(","):
        with tempfile.TemporaryDirectory(prefix="odradek-differential-") as scratch, serving(name, Path(scratch)) as address:
            counts, found = compare(spark, address, f"{scratch}/warehouse", chosen.seed, chosen.steps)
        compared = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        print(f"{name}: {compared}; {sum(counts.values())} rows compared, differences {len(found)}", flush=True)
        print("".join(f"  {line}\n" for line in found), end="", flush=True)
        differ += len(found)
    spark.stop()
    return int(differ > 0)


@contextmanager
def serving(name: str, scratch: Path) -> Iterator[str]:
    """The address of a broker of this name, until the end of the ``with``."""
    if name == "odradek":
        with BrokerProcess(scratch / "broker", settings=SETTINGS) as broker:
            yield broker.address
    else:
        with KafkaRuns(scratch / "kafka").serving("broker", SETTINGS) as run:
            yield run.address


def compare(
    spark: SparkSession, address: str, warehouse: str, seed: int, steps: int, parts: int = 2
) -> tuple[dict[str, int], list[str]]:
    """Live, read, and compare: (rows compared by kind, what differs). In parts, so that tables are built upon what they were."""
    with Life(address, seed) as life, Answers(spark, address) as answers:
        for part in range(parts):
            life.live(steps // parts, is_first=part == 0)
            ingest(spark, IngestOptions(address, warehouse))
            build_tables(spark, warehouse)
        counts, found = differences(answers.rows(), table_rows(spark, warehouse))
        printed, not_alike = formatters.differences(spark, warehouse, address)
    return counts | printed, found + not_alike


if __name__ == "__main__":
    sys.exit(main())
