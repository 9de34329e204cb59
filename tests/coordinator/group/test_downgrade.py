"""The last member of the consumer protocol goes, and classic members are left: whether they are a classic group then, and how."""

import pytest

from odradek.protocol.coordinator_records import GroupMetadataKey
from odradek.protocol.coordinator_records.consumer_protocol import assigned_partitions
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.group.migration_bed import MigrationBed


def mixed(policy="bidirectional", **options):
    """A group of ``n``, of the consumer protocol, and a classic member, two partitions each; the bed and the classic member."""
    bed = MigrationBed(policy)
    bed.topic("t", 4)
    bed.accepted("n", 0)
    member_id, generation = bed.joined(**options)
    assert bed.synced(member_id, generation, instance_id=options.get("instance_id")) == {}
    bed.accepted("n", 2, owned={"t": [0, 1]})
    assert bed.heartbeat(member_id, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert bed.joined(member_id, **options) == (member_id, 3)
    assert len(bed.synced(member_id, 3, instance_id=options.get("instance_id"))["t"]) == 2
    bed.records()
    return bed, member_id


def rejoin(bed, member_id):
    """The member joins again, leads, and assigns itself everything."""
    joined = bed.joins(member_id).response
    assert (joined.error_code, joined.leader, joined.protocol_name) == (ErrorCode.NONE, member_id, "range")
    assert bed.sync(member_id, joined.generation_id, {member_id: b"all"}).response.assignment == b"all"
    return joined.generation_id


def test_when_the_last_one_leaves_the_classic_members_are_a_classic_group_that_rebalances():
    bed, member_id = mixed()
    target = sorted(bed.group().targets.get(member_id)[bed.topics.by_name["t"].topic_id])
    bed.beat("n", -1)
    records = bed.records()
    key, value = records[-1]
    assert [type(each.key).__name__.removeprefix("ConsumerGroup") for each in records[:-1]] == [
        "CurrentMemberAssignmentKey",
        "CurrentMemberAssignmentKey",
        "TargetAssignmentMemberKey",
        "TargetAssignmentMemberKey",
        "TargetAssignmentMetadataKey",
        "MemberMetadataKey",
        "MemberMetadataKey",
        "PartitionMetadataKey",
        "MetadataKey",
    ]
    assert all(record.value is None for record in records[:-1])
    assert key == GroupMetadataKey("g")
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == ("consumer", 3, "range", member_id)
    (stored,) = value.members
    assert (stored.member_id, stored.session_timeout_ms, stored.rebalance_timeout_ms) == (member_id, 10_000, 60_000)
    # What it was to have, which is not yet what the one that left had.
    assert assigned_partitions(stored.assignment) == [("t", target)]
    assert bed.kind() == "classic"
    assert bed.heartbeat(member_id, 3) == ErrorCode.REBALANCE_IN_PROGRESS
    assert rejoin(bed, member_id) == 4
    assert bed.heartbeat(member_id, 4) == ErrorCode.NONE


def test_when_the_session_of_the_last_one_ends_the_classic_members_are_a_classic_group():
    bed, member_id = mixed()
    for _ in range(5):
        bed.advance(9_000)
        bed.heartbeat(member_id, 3)
    assert bed.kind() == "classic"
    assert rejoin(bed, member_id) == 4


def test_when_the_last_one_does_not_give_partitions_up_the_classic_members_are_a_classic_group():
    bed = MigrationBed()
    bed.topic("t", 4)
    bed.accepted("n", 0, rebalance_timeout_ms=1_000)
    member_id, generation = bed.joined()
    bed.synced(member_id, generation)
    bed.accepted("n", 2, owned={"t": [0, 1, 2, 3]})
    bed.advance(1_100)
    assert bed.kind() == "classic"
    assert rejoin(bed, member_id) == generation + 1


def test_a_group_that_changes_back_before_it_has_rebalanced_gives_out_nothing_that_a_member_still_has():
    bed = MigrationBed()
    bed.topic("t", 4)
    (member_id,) = bed.classic({"t": [0, 1, 2, 3]})
    bed.accepted("n", 0)
    assert sum(map(len, bed.group().targets.get(member_id).values())) == 2
    # The classic member has not heard of its target when the consumer group ends, nor when the next one begins.
    bed.beat("n", -1)
    assert bed.kind() == "classic"
    assert bed.accepted("m", 0) == (3, {})
    assert bed.holders() == {member_id: [0, 1, 2, 3]}
    assert bed.heartbeat(member_id, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    bed.joined(member_id)
    assert len(bed.accepted("m", 3, owned={})[1]["t"]) == 2


def test_a_leave_group_that_names_the_last_one_downgrades_as_well():
    bed, member_id = mixed()
    response = bed.leave(("n", None, "by hand"), ("nobody", None, None))
    assert [each.error_code for each in response.members] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert bed.kind() == "classic"
    assert bed.heartbeat(member_id, 3) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_consumer_group_stays_one_while_it_has_a_member_of_the_consumer_protocol():
    bed, member_id = mixed()
    bed.accepted("m", 0)
    bed.beat("n", -1)
    assert bed.kind() == "consumer"
    bed.leave((member_id, None, None))
    assert bed.kind() == "consumer"
    assert set(bed.group().members) == {"m"}


def test_a_static_member_that_is_away_for_a_while_is_still_one_of_the_consumer_protocol():
    bed = MigrationBed()
    bed.topic("t", 4)
    bed.accepted("n", 0, instance_id="i")
    bed.joined()
    bed.beat("n", -2, instance_id="i")
    assert bed.kind() == "consumer"


def test_a_group_that_nobody_is_left_in_stays_of_its_kind():
    bed, member_id = mixed()
    bed.leave((member_id, None, None), ("n", None, None))
    assert (bed.kind(), bed.group().state) == ("consumer", "Empty")


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_a_policy_without_downgrades_keeps_the_consumer_group(policy):
    bed, member_id = mixed()
    bed.set_policy(policy)
    bed.beat("n", -1)
    assert bed.kind() == "consumer"
    assert set(bed.group().members) == {member_id}


def test_classic_members_alone_in_a_consumer_group_learn_of_new_partitions():
    bed, member_id = mixed()
    bed.set_policy("upgrade")
    bed.beat("n", -1)
    bed.joined(member_id)
    bed.synced(member_id, 4)
    bed.topic("t", 5)
    assert bed.heartbeat(member_id, 4) == ErrorCode.REBALANCE_IN_PROGRESS
    assert bed.joined(member_id, owned={"t": [0, 1, 2, 3]}) == (member_id, 5)
    assert bed.synced(member_id, 5) == {"t": [0, 1, 2, 3, 4]}


def test_a_group_that_is_too_large_for_a_classic_one_stays_a_consumer_group():
    bed, _ = mixed()
    bed.joined(client_id="d")
    bed.config = type(bed.config)(group_max_size=1)
    bed.beat("n", -1)
    assert bed.kind() == "consumer"


def test_a_downgrade_that_cannot_be_written_leaves_the_group_as_it_was():
    bed, member_id = mixed()
    bed.log.failures.append(KafkaError(ErrorCode.NOT_COORDINATOR))
    assert bed.refused("n", -1) == ErrorCode.NOT_COORDINATOR
    assert bed.kind() == "consumer"
    assert bed.heartbeat(member_id, 3) == ErrorCode.NONE
    assert bed.accepted("n", 3) == (3, None)
    assert bed.synced(member_id, 3) == {"t": [2, 3]}


def test_a_join_that_a_failed_downgrade_held_fails_with_it_and_comes_again():
    bed, member_id = mixed()
    bed.log.failures.append(KafkaError(ErrorCode.NOT_COORDINATOR))
    bed.beat("n", -1, turn=False)
    held = bed.joins(member_id, turn=False)
    bed.turn()
    assert held.response.error_code == ErrorCode.NOT_COORDINATOR
    assert bed.kind() == "consumer"
    assert bed.joined(member_id, owned={"t": [2, 3]}) == (member_id, 3)


def test_a_session_that_ends_while_the_log_takes_nothing_ends_when_it_does_again():
    bed, member_id = mixed()
    bed.log.failures.append(KafkaError(ErrorCode.NOT_COORDINATOR))
    for _ in range(5):
        bed.advance(9_000)
        bed.heartbeat(member_id, 3)
    bed.advance(1_000)
    assert bed.kind() == "classic"
    assert rejoin(bed, member_id) == 4


def test_offsets_stay_through_a_downgrade():
    bed, member_id = mixed()
    assert bed.commit("n", 3, 7) == ErrorCode.NONE
    bed.beat("n", -1)
    assert bed.committed() == 7
    generation = rejoin(bed, member_id)
    assert bed.commit(member_id, generation, 8) == ErrorCode.NONE
    bed.restart()
    assert (bed.kind(), bed.committed()) == ("classic", 8)


def test_a_broker_that_dies_after_a_downgrade_rebalances_the_group_when_it_is_back():
    bed, member_id = mixed()
    bed.beat("n", -1)
    bed.restart()
    assert bed.heartbeat(member_id, 3) == ErrorCode.REBALANCE_IN_PROGRESS
    assert rejoin(bed, member_id) == 4
    bed.restart()
    assert bed.heartbeat(member_id, 4) == ErrorCode.NONE


def test_a_group_goes_up_and_down_and_up_again():
    bed, member_id = mixed()
    bed.beat("n", -1)
    rejoin(bed, member_id)
    # What it was assigned is no assignment that can be read: it has nothing until it joins.
    assert bed.refused("m", 0) == ErrorCode.GROUP_ID_NOT_FOUND
    joined = bed.joins(member_id, protocols=["range", "roundrobin"]).response
    bed.sync(member_id, joined.generation_id, {member_id: b""}, protocol=joined.protocol_name)
    assert bed.accepted("m", 0)[0] == joined.generation_id + 1
    assert bed.joined(member_id, protocols=["range", "roundrobin"])[1] == joined.generation_id + 1
    bed.beat("m", -1)
    assert bed.kind() == "classic"
    rejoin(bed, member_id)
    bed.leave((member_id, None, None))
    assert bed.accepted("m", 0) == (2, {"t": [0, 1, 2, 3]})


def test_a_static_member_that_comes_back_with_the_classic_protocol_has_what_it_had():
    bed = MigrationBed()
    bed.topic("t", 4)
    bed.accepted("n", 0, instance_id="i")
    bed.records()
    joined = bed.joins(instance_id="i").response
    assert bed.kind() == "classic"
    assert (joined.error_code, joined.generation_id, joined.leader) == (ErrorCode.NONE, 2, "")
    assert bed.synced(joined.member_id, 2, instance_id="i") == {"t": [0, 1, 2, 3]}
    assert bed.heartbeat(joined.member_id, 2, instance_id="i") == ErrorCode.NONE
    assert bed.refused("n", 2, instance_id="i") == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_static_member_that_comes_back_with_another_subscription_makes_the_classic_group_rebalance():
    bed = MigrationBed()
    bed.topic("t", 4)
    bed.topic("u", 1)
    bed.accepted("n", 0, instance_id="i")
    joined = bed.joins(names=["t", "u"], instance_id="i").response
    assert bed.kind() == "classic"
    again = bed.joins(joined.member_id, ["t", "u"], instance_id="i").response
    assert (again.error_code, again.leader) == (ErrorCode.NONE, joined.member_id)


def test_a_static_member_that_cannot_be_written_leaves_its_predecessor_in_place():
    bed = MigrationBed()
    bed.topic("t", 4)
    bed.accepted("n", 0, instance_id="i")
    bed.log.failures.append(KafkaError(ErrorCode.NOT_COORDINATOR))
    bed.joins(instance_id="i")
    assert (bed.kind(), bed.accepted("n", 2, instance_id="i")) == ("consumer", (2, None))
