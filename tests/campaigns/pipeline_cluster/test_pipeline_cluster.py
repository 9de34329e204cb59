"""Ingest on a cluster of Spark: a small share of the campaign pipeline-cluster, which builds and compares the tables, too."""

from collections import Counter

import pyarrow.dataset as ds
import pytest

from odradek.pipeline.schema import RAW_DIR
from tests.campaigns.pipeline_cluster.__main__ import run_on, standalone_cluster
from tests.campaigns.pipeline_kills.runs import SETTINGS, load
from tests.spark.session import require_java

RECORDS = 2_000


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_a_cluster_ingests_every_record_once(broker_process, tmp_path):
    require_java()
    broker = broker_process(settings=SETTINGS)
    load(broker.address, RECORDS)
    with standalone_cluster(tmp_path / "cluster") as master:
        run_on(master, "ingest", broker, tmp_path, tmp_path / "warehouse")
    raw = ds.dataset(tmp_path / "warehouse" / RAW_DIR, partitioning="hive").to_table(["topic", "partition", "offset"])
    seen = Counter(tuple(row.values()) for row in raw.to_pylist())
    assert seen.total() == RECORDS
    assert set(seen.values()) == {1}
