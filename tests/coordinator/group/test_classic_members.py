"""Classic members of a consumer group: what they are told, what they are refused for, and how long they have."""

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.group.migration_bed import MigrationBed, subscription
from tests.coordinator.long_work import finished


@pytest.fixture
def bed():
    """A topic ``t`` of four partitions, all of them of ``n``, the one member of the group."""
    bed = MigrationBed()
    bed.topic("t", 4)
    bed.accepted("n", 0)
    return bed


def code(answer):
    return ErrorCode(answer.response.error_code)


def shared(bed, **options):
    """A classic member that has two partitions in epoch 3, and ``n`` the other two."""
    member_id, generation = bed.joined(**options)
    instance_id = options.get("instance_id")
    bed.synced(member_id, generation, instance_id=instance_id)
    bed.accepted("n", 2, owned={"t": [0, 1]})
    bed.joined(member_id, **options)
    bed.synced(member_id, 3, instance_id=instance_id)
    assert bed.holders() == {"n": [0, 1], member_id: [2, 3]}
    bed.records()
    return member_id


def test_a_member_without_an_id_is_given_one_to_come_back_with(bed):
    first = bed.join(protocols=[("range", subscription())]).response
    assert (first.error_code, bed.records()[6:]) == (ErrorCode.MEMBER_ID_REQUIRED, [])
    second = bed.join(first.member_id, protocols=[("range", subscription())]).response
    assert (second.error_code, second.member_id) == (ErrorCode.NONE, first.member_id)


def test_an_old_client_without_an_id_joins_at_once(bed):
    answer = bed.join(version=3, protocols=[("range", subscription())]).response
    assert answer.error_code == ErrorCode.NONE
    assert answer.member_id in bed.group().members


def test_a_member_id_that_nobody_has_is_a_new_member_s(bed):
    assert bed.joined("made-up") == ("made-up", 3)


def test_one_that_nobody_has_any_more_is_told_so_where_it_takes_partitions_for_its_own(bed):
    answer = bed.join("gone", protocols=[("cooperative-sticky", subscription(owned={"t": [0]}))])
    assert code(answer) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bed.group().members.keys() == {"n"}
    assert bed.joined("gone") == ("gone", 3)


def test_the_answer_has_no_leader_and_no_members_and_the_first_protocol(bed):
    answer = bed.joins(protocols=["cooperative-sticky", "range"]).response
    assert (answer.leader, answer.members, answer.protocol_type, answer.protocol_name) == (
        "",
        (),
        "consumer",
        "cooperative-sticky",
    )
    assert answer.generation_id == bed.group().members[answer.member_id].member_epoch


def test_a_member_is_told_the_partitions_that_are_free_when_it_joins_again(bed):
    member_id, generation = bed.joined()
    assert bed.synced(member_id, generation) == {}
    # They are not free yet.
    assert bed.heartbeat(member_id, generation) == ErrorCode.NONE
    bed.accepted("n", 2, owned={"t": [0, 1]})
    assert bed.heartbeat(member_id, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert bed.joined(member_id) == (member_id, generation)
    assert bed.synced(member_id, generation) == {"t": [2, 3]}
    assert bed.heartbeat(member_id, generation) == ErrorCode.NONE


def test_a_newer_target_has_members_join_again_from_heartbeat_and_sync(bed):
    member_id = shared(bed)
    bed.accepted("m", 0)
    assert bed.heartbeat(member_id, 3) == ErrorCode.REBALANCE_IN_PROGRESS
    assert code(bed.sync(member_id, 3)) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_has_to_give_partitions_up_syncs_and_is_told_to_join_again(bed):
    member_id = shared(bed)
    bed.accepted("l", 0)
    bed.accepted("m", 0)
    assert bed.joined(member_id, owned={"t": [2, 3]}) == (member_id, 3)
    (kept,) = bed.synced(member_id, 3)["t"]
    assert bed.heartbeat(member_id, 3) == ErrorCode.REBALANCE_IN_PROGRESS
    assert bed.joined(member_id, owned={"t": [kept]}) == (member_id, 5)


def test_what_a_member_owns_is_in_its_subscription_by_the_names_of_topics_that_are_there(bed):
    member_id = shared(bed)
    bed.accepted("m", 0)
    # It owns nothing that it has to give up, as far as it can be understood.
    assert bed.joined(member_id, owned={"gone": [2, 3], "t": []}) == (member_id, 4)


def test_the_rack_of_a_member_is_in_its_subscription(bed):
    answer = bed.join("x", protocols=[("range", subscription(rack_id="r"))]).response
    assert bed.group().members[answer.member_id].rack_id == "r"


@pytest.mark.parametrize("version", [0, 1, 2, 3, 9])
def test_every_version_of_a_subscription_is_read(bed, version):
    assert code(bed.join("x", protocols=[("range", subscription(version=version))])) == ErrorCode.NONE
    assert bed.group().members["x"].subscribed_topic_names == frozenset({"t"})
    bed.accepted("n", 2, owned={"t": [0, 1]})
    bed.join("x", protocols=[("range", subscription(version=version))])
    told = bed.sync("x", 3).response.assignment
    assert told[:2] == min(version, 3).to_bytes(2)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": [("range", b"?")]}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"instance_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_join_that_does_not_fit_is_refused(bed, options, error):
    answer = bed.join("x", **{"protocols": [("range", subscription())], **options})
    assert code(answer) == error
    assert bed.records()[6:] == []


def test_a_protocol_has_to_be_one_of_all_other_classic_members(bed):
    bed.joined("x", protocols=["range", "roundrobin"])
    bed.joined("y", protocols=["roundrobin", "sticky"])
    assert code(bed.joins("z", protocols=["range", "sticky"])) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code(bed.joins("z", protocols=["sticky", "roundrobin"])) == ErrorCode.NONE


def test_a_policy_that_permits_nothing_keeps_classic_members_out(bed):
    bed.set_policy("disabled")
    assert code(bed.joins("x")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    bed.set_policy("upgrade")
    assert code(bed.joins("x")) == ErrorCode.NONE


def test_a_group_that_is_full_keeps_classic_members_out(bed):
    bed.group_config = bed.group_config._replace(max_size=2)
    bed.joined("x")
    assert code(bed.joins("y")) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert code(bed.joins("x")) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("who", "generation", "instance_id", "error"),
    [
        ("classic", 3, None, ErrorCode.NONE),
        ("classic", 2, None, ErrorCode.ILLEGAL_GENERATION),
        ("n", 3, None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("nobody", 3, None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("classic", 3, "i", ErrorCode.NONE),
        ("nobody", 3, "i", ErrorCode.FENCED_INSTANCE_ID),
        ("classic", 3, "j", ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_heartbeat_and_sync_know_classic_members_of_their_epoch_alone(bed, who, generation, instance_id, error):
    member_id = shared(bed, instance_id="i")
    who = member_id if who == "classic" else who
    assert bed.heartbeat(who, generation, instance_id=instance_id) == error
    assert code(bed.sync(who, generation, instance_id=instance_id)) == error


def test_a_sync_with_another_protocol_is_refused(bed):
    member_id = shared(bed)
    assert code(bed.sync(member_id, 3, protocol="sticky")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code(bed.sync(member_id, 3, protocol_type="connect")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code(bed.sync(member_id, 3, protocol=None)) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code(bed.sync(member_id, 3, protocol=None, version=4)) == ErrorCode.NONE


def test_members_of_the_consumer_protocol_are_not_known_to_a_classic_one_and_the_other_way(bed):
    member_id = shared(bed)
    # It comes over with its id, and what it has.
    assert bed.accepted(member_id, 0)[0] == 3
    assert bed.heartbeat(member_id, 3) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_leaves_gives_its_partitions_to_the_others(bed):
    member_id = shared(bed)
    response = bed.leave((member_id, None, "done"))
    assert [each.error_code for each in response.members] == [ErrorCode.NONE]
    assert bed.accepted("n", 3, owned={"t": [0, 1]}) == (4, {"t": [0, 1, 2, 3]})


def test_a_static_member_leaves_by_its_instance_id(bed):
    member_id = shared(bed, instance_id="i")
    response = bed.leave(("", "i", None), ("other", "i", None), ("", "j", None), (member_id, None, None))
    assert [each.error_code for each in response.members] == [
        ErrorCode.NONE,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert set(bed.group().members) == {"n"}


def test_a_silent_member_is_removed_after_its_own_session_timeout(bed):
    member_id = shared(bed, session_timeout_ms=20_000)
    bed.advance(19_000)
    assert bed.heartbeat(member_id, 3) == ErrorCode.NONE
    bed.advance(19_900)
    assert member_id in bed.group().members
    bed.advance(200)
    assert member_id not in bed.group().members


def test_a_member_that_is_told_to_join_again_has_its_rebalance_timeout_for_it(bed):
    member_id = shared(bed, rebalance_timeout_ms=15_000)
    bed.accepted("m", 0)
    for _ in range(3):
        assert bed.heartbeat(member_id, 3) == ErrorCode.REBALANCE_IN_PROGRESS
        bed.advance(4_900)
    assert member_id in bed.group().members
    bed.heartbeat(member_id, 3)
    bed.advance(400)
    assert member_id not in bed.group().members


def test_a_member_that_has_joined_has_its_rebalance_timeout_to_sync(bed):
    member_id, generation = bed.joined(rebalance_timeout_ms=15_000)
    for _ in range(3):
        bed.heartbeat(member_id, generation)
        bed.advance(4_900)
    assert member_id in bed.group().members
    bed.heartbeat(member_id, generation)
    bed.advance(400)
    assert member_id not in bed.group().members


def test_a_member_that_does_both_in_time_stays(bed):
    member_id = shared(bed, rebalance_timeout_ms=15_000)
    bed.accepted("m", 0)
    for _ in range(8):
        bed.heartbeat(member_id, bed.group().members[member_id].member_epoch)
        bed.synced(*bed.joined(member_id, rebalance_timeout_ms=15_000))
        bed.advance(5_000)
    assert member_id in bed.group().members


def test_a_static_member_of_the_consumer_protocol_gives_its_place_to_a_classic_one():
    bed = MigrationBed()
    bed.topic("t", 4)
    bed.accepted("a", 0, instance_id="i")
    bed.accepted("n", 0)
    bed.accepted("a", 2, instance_id="i", owned={"t": [0, 1]})
    bed.accepted("n", 3, owned={})
    member_id, generation = bed.joined(instance_id="i")
    assert bed.kind() == "consumer"
    assert bed.synced(member_id, generation, instance_id="i") == {"t": [0, 1]}
    assert bed.refused("a", 3, instance_id="i") == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_classic_member_comes_back_under_another_id(bed):
    member_id = shared(bed, instance_id="i")
    again, generation = bed.joined(instance_id="i")
    assert again != member_id
    assert bed.synced(again, generation, instance_id="i") == {"t": [2, 3]}
    assert bed.heartbeat(member_id, 3, instance_id="i") == ErrorCode.FENCED_INSTANCE_ID


def test_a_join_that_cannot_be_written_leaves_the_group_as_it_was(bed):
    bed.log.failures.append(KafkaError(ErrorCode.NOT_COORDINATOR))
    bed.join("x", protocols=[("range", subscription())])
    assert set(bed.group().members) == {"n"}
    assert bed.accepted("n", 2) == (2, None)


def test_a_classic_member_commits_with_its_epoch_alone(bed):
    member_id = shared(bed)
    assert bed.commit(member_id, 3, 1) == ErrorCode.NONE
    assert bed.commit(member_id, 2, 1) == ErrorCode.ILLEGAL_GENERATION
    assert bed.commit("n", 3, 1) == ErrorCode.NONE


def test_a_late_commit_is_taken_for_partitions_that_the_member_has_had_since_then(bed):
    member_id = shared(bed)
    topic_id = bed.topics.by_name["t"].topic_id
    bed.accepted("m", 0)
    bed.joined(member_id, owned={"t": [2, 3]})
    assert bed.group().members[member_id].member_epoch == 4
    kept = [index for index in (2, 3) if bed.commit(member_id, 3, 1, index, topic_id) == ErrorCode.NONE]
    assert bed.commit(member_id, 3, 1, 0, topic_id) == ErrorCode.ILLEGAL_GENERATION
    assert bed.commit(member_id, 2, 1, 2, topic_id) == ErrorCode.ILLEGAL_GENERATION
    assert kept


def test_a_classic_member_is_described_as_one(bed):
    member_id = shared(bed)
    group = bed.runtime.read(0, lambda shard, offset: finished(shard.describe_consumer_group("g", offset)))
    assert {each.member_id: each.member_type for each in group.members} == {"n": 1, member_id: 0}
