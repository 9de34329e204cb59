"""An observer of a quorum of Apache Kafka's whose voters are records of the metadata log (KIP-853, ``kraft.version`` 1)."""

import json

import pytest
import pytest_asyncio

from tests.controller.quorum.real_quorum import quorum_of_kafka

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("kafka-clusters"), pytest.mark.timeout(240)]
BROKER_RESOURCE = 4
SETTINGS = {"metadata.max.idle.interval.ms": "100"}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def quorum(tmp_path_factory):
    async with quorum_of_kafka(tmp_path_factory.mktemp("controllers"), 1, SETTINGS, is_dynamic=True) as made:
        yield made


async def test_the_leader_is_found_from_a_bootstrap_server_and_its_voters_are_carried_on(quorum, tmp_path):
    settings = {"metadata.log.max.record.bytes.between.snapshots": "100"}
    async with quorum.observing(tmp_path, settings=settings, are_voters_known=False) as observed:
        await quorum.set_config(BROKER_RESOURCE, "", "log.cleaner.threads", "2")
        await observed.has_applied(await quorum.committed_offset())
        assert observed.observer.leader[:3] == (1, "127.0.0.1", quorum.controllers.ports[1])
        assert observed.log.kraft_version == 1
        voters = dict(observed.log.quorum)
        assert len(voters) == 2
        end_offset = observed.log.end_offset
        await observed.until(lambda: max(observed.log.snapshots.ids, default=(0, 0))[0] > end_offset)
        leader = observed.observer.leader
    async with quorum.observing(tmp_path, are_voters_known=False) as observed:
        await observed.has_applied(await quorum.committed_offset())
        assert observed.log.quorum == voters
    state = json.loads((tmp_path / "__cluster_metadata-0" / "quorum-state").read_bytes())
    theirs = json.loads((quorum.controllers.log_dir(1) / "quorum-state").read_bytes())
    # The voter has voted for itself, as an observer never does.
    assert state.keys() == theirs.keys()
    assert (state["data_version"], state["leaderId"], state["leaderEpoch"]) == (1, leader.node_id, leader.epoch)
    assert (theirs["data_version"], theirs["leaderId"], theirs["leaderEpoch"]) == (1, leader.node_id, leader.epoch)
