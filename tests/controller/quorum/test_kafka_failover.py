"""An observer of three controllers of Apache Kafka's own, whose leader dies with records that nobody else has."""

import pytest
import pytest_asyncio

from odradek.client.api import ClientError
from odradek.protocol.api_keys import ApiKey
from tests.controller.quorum.real_quorum import quorum_of_kafka

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("kafka-clusters"), pytest.mark.timeout(240)]
BROKER_RESOURCE = 4
SETTINGS = {"controller.quorum.election.timeout.ms": "500", "metadata.max.idle.interval.ms": "200"}
CONFIG = "log.cleaner.threads"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def quorum(tmp_path_factory):
    async with quorum_of_kafka(tmp_path_factory.mktemp("controllers"), 3, SETTINGS) as made:
        yield made


async def test_what_a_dead_leader_alone_had_is_taken_back_and_the_next_one_followed(quorum, tmp_path):
    controllers = quorum.controllers
    async with quorum.observing(tmp_path) as observed:
        await quorum.set_config(BROKER_RESOURCE, "", CONFIG, "2")
        await observed.has_applied(await quorum.committed_offset())
        dead, _ = await quorum.active()
        others = controllers.ports.keys() - {dead}
        controllers.freeze(*others)
        committed = observed.log.high_watermark
        # With the next record the leader answers the Fetch that each voter has open, and no further one comes.
        end_offset = observed.log.end_offset
        await observed.until(lambda: observed.log.end_offset > end_offset + 1)
        # So the leader writes this down, and the observer fetches it, but no voter does.
        lost = quorum.ask(dead, ApiKey.INCREMENTAL_ALTER_CONFIGS, quorum.alter_config(BROKER_RESOURCE, "", CONFIG, "3"), 10_000)
        waiting = observed.follow_up(lost)
        await observed.until(lambda: observed.data.count(CONFIG.encode()) == 2)
        diverged_epoch = observed.observer.leader.epoch
        assert observed.image.configs(BROKER_RESOURCE, "") == {CONFIG: "2"}
        controllers.kill9(dead)
        with pytest.raises(ClientError):
            await waiting
        controllers.thaw(*others)
        await quorum.set_config(BROKER_RESOURCE, "", "compression.type", "zstd")
        await observed.has_applied(await quorum.committed_offset())
        alive, _ = await quorum.active()
        leader = observed.observer.leader
        assert (leader.node_id, leader.port) == (alive, controllers.ports[alive])
        assert leader.epoch > diverged_epoch
        assert observed.image.configs(BROKER_RESOURCE, "") == {CONFIG: "2", "compression.type": "zstd"}
        assert observed.log.high_watermark > committed
        ours = observed.data
        assert ours.count(CONFIG.encode()) == 1
        assert controllers.batches(alive, observed.log.start_offset).startswith(ours)
