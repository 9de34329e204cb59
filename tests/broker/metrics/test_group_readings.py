"""What the metrics say of the group coordinator after groups have done something."""

import pytest

from odradek.broker.metrics.shards import active_shards
from odradek.protocol.api_keys import ApiKey
from tests.broker.metrics.bed import loaded, plain

STATES = "kafka_coordinator_group_groupmetadatamanager_numgroups"
COORDINATOR = "kafka_server_group_coordinator_metrics_"


class Groups:
    """Raw members of groups on a bed whose coordinator is loaded."""

    def __init__(self, bed):
        self.bed = bed

    def send(self, api_key, version, **fields):
        """The answer's future."""
        return self.bed.send(api_key, version, **fields)

    def join(self, group, member_id=""):
        return self.send(
            ApiKey.JOIN_GROUP,
            3,
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b""}],
        )

    async def stable(self, group):
        """A group of one member; (generation, member id)."""
        joined = await self.join(group)
        at = {"group_id": group, "generation_id": joined.generation_id, "member_id": joined.member_id}
        assignments = [{"member_id": joined.member_id, "assignment": b"x"}]
        await self.send(ApiKey.SYNC_GROUP, 3, **at, assignments=assignments)
        return at

    async def commit(self, group, *partitions, generation=-1, member_id=""):
        rows = [{"partition_index": partition, "committed_offset": 5, "committed_metadata": ""} for partition in partitions]
        return await self.send(
            ApiKey.OFFSET_COMMIT,
            7,
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[{"name": "a", "partitions": rows}],
        )


@pytest.fixture
def settings():
    return {"num_partitions": 3}


@pytest.fixture
async def groups(bed):
    bed.broker.controller.auto_create(["a"])
    await loaded(bed.broker.groups.runtime)
    return Groups(bed)


async def test_a_broker_that_never_had_a_group_says_so_in_zeros(bed):
    read = bed.read()
    assert read[STATES] == {(): 0}
    assert read[f"{COORDINATOR}num_partitions"] == {("loading",): 0, ("active",): 0, ("failed",): 0}
    assert read[f"{COORDINATOR}offset_commit_total"] == {(): 0}
    assert read["odradek_group_last_rebalance_age_ms"] == {}


async def test_groups_are_counted_by_state(groups):
    await groups.stable("g1")
    await groups.join("g2")
    await groups.commit("simple", 0)
    read = groups.bed.read()
    by_state = {name.removeprefix(STATES): counts[()] for name, counts in read.items() if name.startswith(STATES)}
    assert by_state == {"": 3, "empty": 1, "preparingrebalance": 0, "completingrebalance": 1, "stable": 1}
    assert read["odradek_group_members"] == {(): 2}


async def test_a_reading_restores_no_group_and_begins_no_session(groups):
    await groups.stable("g1")
    await groups.commit("simple", 0)
    shards = active_shards(groups.bed.broker.groups).values()
    [shard] = [shard for shard in shards if "g1" in shard.groups.live]
    stored = shard.groups.live.pop("g1")
    for member in stored.members.values():
        shard.classic.sessions.end(stored, member.member_id)
    live = [list(shard.groups.live) for shard in shards]
    assert groups.bed.read()["odradek_group_members"] == {(): 1}
    assert [list(shard.groups.live) for shard in shards] == live
    groups.bed.clock.advance(10_001)
    assert groups.bed.read()["odradek_group_sessions_expired_total"] == {(): 0}


async def test_members_that_wait_for_others_are_counted(groups):
    at = await groups.stable("g")
    task = groups.join("g")
    read = groups.bed.read()
    await groups.send(ApiKey.LEAVE_GROUP, 2, group_id="g", member_id=at["member_id"])
    await task
    assert read["odradek_group_members_waiting"] == {("join",): 1, ("sync",): 0}
    assert read[f"{STATES}preparingrebalance"] == {(): 1}


async def test_members_that_wait_for_their_assignment_are_counted(groups):
    leader = (await groups.stable("g"))["member_id"]
    follower = groups.join("g")
    await groups.join("g", leader)
    joined = await follower
    at = {"group_id": "g", "generation_id": joined.generation_id}
    sync = groups.send(ApiKey.SYNC_GROUP, 3, **at, member_id=joined.member_id, assignments=[])
    read = groups.bed.read()
    await groups.send(ApiKey.SYNC_GROUP, 3, **at, member_id=leader, assignments=[])
    await sync
    after = groups.bed.read()
    assert read["odradek_group_members_waiting"] == {("join",): 0, ("sync",): 1}
    assert after["odradek_group_members_waiting"] == {("join",): 0, ("sync",): 0}


async def test_a_rebalance_is_counted_with_its_latency_and_its_cause(groups):
    joined = await groups.join("g")
    groups.bed.clock.advance(40)
    at = {"group_id": "g", "generation_id": joined.generation_id, "member_id": joined.member_id}
    await groups.send(ApiKey.SYNC_GROUP, 3, **at, assignments=[{"member_id": joined.member_id, "assignment": b"x"}])
    groups.bed.clock.advance(700)
    read = groups.bed.read()
    assert read[f"{COORDINATOR}group_completed_rebalance_total"] == {(): 1}
    assert plain(read["odradek_group_rebalance_latency_ms"][()]) == (1, 40)
    assert read["odradek_group_rebalance_latency_max_ms"] == {(): 40}
    assert read["odradek_group_last_rebalance_age_ms"] == {(): 700}
    assert {cause: count for cause, count in read["odradek_group_rebalances_begun_total"].items() if count} == {
        ("member_added",): 1
    }


async def test_heartbeats_and_sessions_that_ran_out_are_counted(groups):
    at = await groups.stable("g")
    await groups.send(ApiKey.HEARTBEAT, 3, **at)
    await groups.send(ApiKey.HEARTBEAT, 3, **at)
    groups.bed.clock.advance(10_001)
    read = groups.bed.read()
    assert read["odradek_group_heartbeats_total"] == {(): 2}
    assert read["odradek_group_sessions_expired_total"] == {(): 1}
    assert read["odradek_group_members"] == {(): 0}


async def test_members_of_the_consumer_protocol_are_counted_as_well(groups):
    await groups.stable("classic")
    at = {"group_id": "g", "member_id": "m"}
    joining = {"member_epoch": 0, "rebalance_timeout_ms": 10_000, "subscribed_topic_names": ["a"], "topic_partitions": []}
    joined = await groups.send(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **at, **joining)
    await groups.send(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **at, member_epoch=joined.member_epoch)
    read = groups.bed.read()
    groups.bed.clock.advance(45_001)
    after = groups.bed.read()
    assert (read["odradek_group_heartbeats_total"], read["odradek_group_members"]) == ({(): 2}, {(): 2})
    assert read[f"{COORDINATOR}group_count"] == {("classic",): 1, ("consumer",): 1, ("share",): 0, ("streams",): 0}
    assert (read[STATES], read[f"{STATES}stable"], read[f"{STATES}empty"]) == ({(): 1}, {(): 1}, {(): 0})
    assert after["odradek_group_sessions_expired_total"] == {(): 2}


async def test_offsets_are_counted_as_they_come_and_go(groups):
    await groups.commit("g", 0, 1, 2)
    await groups.commit("g", 0)
    rows = [{"partition_index": 1}]
    await groups.send(ApiKey.OFFSET_DELETE, 0, group_id="g", topics=[{"name": "a", "partitions": rows}])
    read = groups.bed.read()
    assert read["kafka_coordinator_group_groupmetadatamanager_numoffsets"] == {(): 2}
    assert read[f"{COORDINATOR}offset_commit_total"] == {(): 4}
    assert read[f"{COORDINATOR}offset_deletion_total"] == {(): 1}


async def test_loads_and_appends_are_counted(groups):
    await groups.commit("g", 0, 1)
    read = groups.bed.read()
    assert read[f"{COORDINATOR}num_partitions"] == {("loading",): 0, ("active",): 3, ("failed",): 0}
    assert plain(read[f"{COORDINATOR}partition_load_time"][()]) == (3, 0)
    assert plain(read[f"{COORDINATOR}batch_flush_time_ms"][()]) == (1, 0)
    assert read["odradek_coordinator_appended_records_total"] == {(): 2}


async def test_a_deleted_group_is_counted_and_gone(groups):
    await groups.commit("g", 0)
    await groups.send(ApiKey.DELETE_GROUPS, 1, groups_names=["g"])
    read = groups.bed.read()
    assert read["odradek_groups_deleted_total"] == {(): 1}
    assert read[f"{COORDINATOR}offset_deletion_total"] == {(): 1}
    assert read[STATES] == {(): 0}
