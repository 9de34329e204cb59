"""A member of the consumer protocol joins a classic group: who may, what becomes of the group, and of what it held."""

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.group.migration_bed import MigrationBed


@pytest.fixture
def bed():
    """A topic ``t`` of four partitions."""
    bed = MigrationBed()
    bed.topic("t", 4)
    return bed


def test_the_classic_members_are_told_to_join_again_and_give_partitions_up_before_others_get_them(bed):
    # Of the two, the first by id keeps what it has.
    other, one = bed.classic({"t": [2, 3]}, {"t": [0, 1]})
    assert bed.accepted("n", 0) == (2, {})
    assert bed.heartbeat(one, 1) == bed.heartbeat(other, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    # Cooperative: it joins with what it owns, and is to have less of that. That it joins again says that it has given it up.
    keeps = bed.group().targets.get(one)
    assert bed.joined(one, owned={"t": [0, 1]}) == (one, 1)
    kept = bed.synced(one, 1)["t"]
    assert keeps == {bed.topics.by_name["t"].topic_id: frozenset(kept)}
    assert bed.heartbeat(one, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    # Until then nobody else has the partition.
    assert bed.accepted("n", 2, owned={}) == (2, None)
    assert bed.joined(one, owned={"t": kept}) == (one, 2)
    assert bed.synced(one, 2) == {"t": kept}
    # Eager: it owns nothing as it joins.
    assert bed.joined(other) == (other, 2)
    bed.synced(other, 2)
    bed.accepted("n", 2, owned={})
    assert sorted(index for each in bed.holders().values() for index in each) == [0, 1, 2, 3]
    assert set(bed.holders()) == {one, other, "n"}
    assert bed.heartbeat(one, 2) == bed.heartbeat(other, 2) == ErrorCode.NONE
    assert bed.group().state == "Stable"


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_an_empty_group_gives_way_whatever_the_policy(policy):
    bed = MigrationBed(policy)
    bed.topic("t", 4)
    (member_id,) = bed.classic({"t": [0, 1, 2, 3]})
    bed.leave((member_id, None, None))
    assert bed.accepted("n", 0) == (2, {"t": [0, 1, 2, 3]})
    bed.beat("n", -1)
    joining = bed.joins()
    bed.advance(0)
    assert joining.response.generation_id == 1
    assert bed.kind() == "classic"


def test_a_group_of_another_kind_of_members_is_kept(bed):
    bed.joins(version=3, protocol_type="connect")
    assert bed.refused("n", 0) == ErrorCode.GROUP_ID_NOT_FOUND
    assert bed.kind() == "classic"


def test_a_group_that_is_too_large_is_kept():
    bed = MigrationBed(max_size=1)
    bed.topic("t", 4)
    bed.classic({"t": [0, 1]}, {"t": [2, 3]})
    assert bed.refused("n", 0) == ErrorCode.GROUP_ID_NOT_FOUND
    assert bed.kind() == "classic"


def test_a_group_whose_assignor_says_more_than_partitions_is_kept(bed):
    bed.classic({"t": [0, 1, 2, 3]}, user_data=b"sticky")
    assert bed.refused("n", 0) == ErrorCode.GROUP_ID_NOT_FOUND
    assert bed.kind() == "classic"


def test_a_group_whose_subscriptions_cannot_be_read_is_kept_and_goes_on_with_what_it_holds(bed):
    waiting = bed.join(version=3, protocols=[("range", b"no subscription")], turn=False)
    refused = bed.beat("n", 0, turn=False)
    bed.advance(0)
    assert (refused.code, bed.kind()) == (ErrorCode.GROUP_ID_NOT_FOUND, "classic")
    assert waiting.response.error_code == ErrorCode.NONE


def test_a_heartbeat_of_a_member_that_is_no_new_one_does_not_upgrade(bed):
    bed.classic({"t": [0, 1, 2, 3]})
    assert bed.refused("n", 4) == ErrorCode.GROUP_ID_NOT_FOUND
    assert bed.refused("n", -1) == ErrorCode.GROUP_ID_NOT_FOUND
    assert bed.kind() == "classic"


def test_requests_that_the_classic_group_held_are_answered_so_that_their_clients_join_again(bed):
    one, other = bed.classic({"t": [0, 1]}, {"t": [2, 3]})
    held = bed.joins(one, ["t"], protocols=["roundrobin", "range"])
    assert held.waits
    bed.accepted("n", 0)
    assert held.response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert bed.joined(one)[0] == one
    assert bed.heartbeat(other, 1) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_sync_that_the_classic_group_held_is_answered_so_that_its_client_joins_again(bed):
    answers = [bed.joins(turn=False, client_id=name, version=3) for name in "ab"]
    bed.advance(0)
    (leader,) = {answer.response.leader for answer in answers}
    (follower,) = {answer.response.member_id for answer in answers} - {leader}
    held = bed.sync(follower, 1)
    assert held.waits
    bed.accepted("n", 0)
    assert held.response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert bed.sync(leader, 1).response.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_in_its_first_rebalance_is_upgraded_with_the_first_protocols_of_its_members(bed):
    bed.config = type(bed.config)(group_initial_rebalance_delay_ms=3_000)
    held = bed.joins(version=3, protocols=["range", "roundrobin"])
    assert held.waits
    assert bed.accepted("n", 0)[0] == 1
    assert held.response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    (classic,) = [member for member in bed.group().members.values() if member.classic is not None]
    assert (classic.member_id, classic.member_epoch, classic.subscribed_topic_names) == (
        held.response.member_id,
        0,
        frozenset({"t"}),
    )


def test_an_upgrade_that_cannot_be_written_leaves_the_group_as_it_was(bed):
    one, other = bed.classic({"t": [0, 1]}, {"t": [2, 3]})
    bed.log.failures.append(KafkaError(ErrorCode.NOT_COORDINATOR))
    assert bed.refused("n", 0) == ErrorCode.NOT_COORDINATOR
    assert bed.kind() == "classic"
    assert bed.heartbeat(one, 1) == bed.heartbeat(other, 1) == ErrorCode.NONE
    assert bed.synced(one, 1) == {"t": [0, 1]}


def test_offsets_stay_through_an_upgrade_and_a_classic_member_commits_with_its_epoch(bed):
    (member_id,) = bed.classic({"t": [0, 1, 2, 3]})
    assert bed.commit(member_id, 1, 7) == ErrorCode.NONE
    bed.accepted("n", 0)
    assert bed.committed() == 7
    assert bed.commit(member_id, 1, 8) == ErrorCode.NONE
    assert bed.commit(member_id, 2, 9) == ErrorCode.ILLEGAL_GENERATION
    bed.restart()
    assert (bed.kind(), bed.committed()) == ("consumer", 8)


def test_the_session_of_a_classic_member_is_its_own(bed):
    (member_id,) = bed.classic({"t": [0, 1, 2, 3]})
    bed.accepted("n", 0)
    bed.advance(9_000)
    assert bed.heartbeat(member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    bed.advance(9_000)
    assert member_id in bed.group().members
    bed.advance(1_100)
    assert set(bed.group().members) == {"n"}


def test_the_state_after_a_restart_is_the_state_before(bed):
    one, other = bed.classic({"t": [0, 1]}, {"t": [2, 3]})
    bed.accepted("n", 0)
    bed.joined(one, owned={"t": [0, 1]})
    before = dict(bed.group().members.items()), dict(bed.group().targets.items()), bed.holders(), bed.group().epoch.get()
    bed.restart()
    assert before == (
        dict(bed.group().members.items()),
        dict(bed.group().targets.items()),
        bed.holders(),
        bed.group().epoch.get(),
    )
    assert bed.heartbeat(other, 1) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_classic_static_member_gives_its_place_to_one_of_the_consumer_protocol(bed):
    (member_id,) = bed.classic({"t": [0, 1, 2, 3]}, instance_id="i")
    # Its subscription is the one that its predecessor had, so nothing changes for the group.
    assert bed.accepted("n", 0, instance_id="i") == (1, {"t": [0, 1, 2, 3]})
    assert set(bed.group().members) == {"n"}
    assert bed.heartbeat(member_id, 1, instance_id="i") == ErrorCode.FENCED_INSTANCE_ID
    assert bed.heartbeat(member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_partitions_that_came_after_the_leaders_assignment_are_given_out_by_the_upgrade(bed):
    (member_id,) = bed.classic({"t": [0, 1, 2, 3]}, instance_id="i")
    bed.topic("t", 5)
    assert bed.accepted("n", 0, instance_id="i") == (2, {"t": [0, 1, 2, 3, 4]})
    assert bed.holders() == {"n": [0, 1, 2, 3, 4]}
    assert member_id not in bed.group().members


def test_a_static_member_that_upgrades_a_group_ends_no_rebalance_that_was_under_way(bed):
    static = bed.joins(version=3, instance_id="i")
    bed.advance(0)
    other = bed.joins(version=3)
    assert bed.heartbeat(static.response.member_id, 1, instance_id="i") == ErrorCode.REBALANCE_IN_PROGRESS
    bed.accepted("n", 0, instance_id="i")
    member_id = other.response.member_id
    assert bed.heartbeat(member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    generation = bed.joined(member_id)[1]
    assert len(bed.synced(member_id, generation)["t"]) == 2
