"""Metrics of the share coordinator."""

import pytest

from odradek.coordinator.share.state import SharePartitionKey
from tests.broker.metrics.bed import plain

_PREFIX = "kafka_server_share_coordinator_metrics_"


@pytest.fixture
def settings():
    return {
        "share_coordinator_state_topic_num_partitions": 1,
        "share_coordinator_snapshot_update_records_per_snapshot": 1,
        "share_coordinator_state_topic_prune_interval_ms": 1000,
    }


async def test_share_partitions_writes_and_pruning_are_told(bed):
    before = bed.read()
    assert before["odradek_share_partitions"] == before[f"{_PREFIX}write_total"] == {(): 0}
    assert before[f"{_PREFIX}num_partitions"] == {("loading",): 0, ("active",): 0, ("failed",): 0}
    assert before[f"{_PREFIX}last_pruned_offset"] == {}

    bed.broker.controller.auto_create(["t"])
    key = SharePartitionKey("g", bed.broker.controller.image.topics["t"].topic_id, 0)
    persister = bed.broker.share_persister
    persister.initialize(key, 0, 0)
    for _ in range(2):
        persister.write(key, 0, 0, 0, 0, ())
    await bed.kit.advance(1000)

    read = bed.read()
    assert read["odradek_share_partitions"] == {(): 1}
    assert read[f"{_PREFIX}write_total"] == {(): 2}
    assert read[f"{_PREFIX}num_partitions"][("active",)] == 1
    assert read[f"{_PREFIX}last_pruned_offset"] == {("__share_group_state", "0"): 2}
    assert read["odradek_share_coordinator_appended_records_total"] == {(): 3}
    assert plain(read[f"{_PREFIX}batch_flush_time_ms"][()])[0] == 1
