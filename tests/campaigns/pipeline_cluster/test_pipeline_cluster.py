"""Ingest on executors that are processes of their own: a small share of the campaign pipeline-cluster.

The campaign starts a master and two workers as a cluster has them, and builds and compares the tables, too.
"""

from collections import Counter

import pyarrow.dataset as ds
import pytest

from odradek.pipeline.schema import RAW_DIR
from tests.campaigns.pipeline_cluster.__main__ import run_on
from tests.campaigns.pipeline_kills.runs import SETTINGS, load
from tests.spark.session import require_java

RECORDS = 2_000
# Two workers of a core each within the driver, with an executor each.
MASTER = "local-cluster[2,1,1024]"


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_a_cluster_ingests_every_record_once(broker_process, tmp_path):
    require_java()
    broker = broker_process(settings=SETTINGS)
    load(broker.address, RECORDS)
    run_on(MASTER, "ingest", broker, tmp_path, tmp_path / "warehouse")
    raw = ds.dataset(tmp_path / "warehouse" / RAW_DIR, partitioning="hive").to_table(["topic", "partition", "offset"])
    seen = Counter(tuple(row.values()) for row in raw.to_pylist())
    assert seen.total() == RECORDS
    assert set(seen.values()) == {1}
