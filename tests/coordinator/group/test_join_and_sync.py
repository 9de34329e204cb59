"""The exact responses, then the exact records."""

import pytest

from odradek.coordinator.group.classic.group import MAX_GENERATION
from odradek.coordinator.runtime.result import CoordinatorRecord
from odradek.protocol.coordinator_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from odradek.protocol.errors import ErrorCode
from tests.coordinator.group.bed import HOST, JOIN, SYNC, Bed


def _record(group_id="g", **value):
    return CoordinatorRecord(GroupMetadataKey(group_id), GroupMetadataValue(**value))


def _member(member_id, assignment, instance_id=None, client_id="c", subscription=b"m"):
    return MemberMetadata(member_id, instance_id, client_id, HOST, 60_000, 10_000, subscription, assignment)


@pytest.fixture
def bed():
    return Bed()


def test_a_new_dynamic_member_is_given_an_id_and_its_group_is_written(bed):
    answer = bed.join(client_id="app")
    assert answer.response == JOIN.JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="app-1")
    assert bed.records() == [
        _record(protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp_ms=bed.clock.now_ms())
    ]


def test_the_leader_s_assignment_is_written_and_then_answered():
    bed = Bed(group_initial_rebalance_delay_ms=10)
    leader_id, _ = bed.add_member()
    follower_id, _ = bed.add_member()
    bed.advance(20)
    bed.records()
    follower = bed.sync(follower_id)
    leader = bed.sync(leader_id, assignments={leader_id: b"x", follower_id: b"y"})
    assert leader.response == SYNC.SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=b"x")
    assert follower.response == SYNC.SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=b"y")
    assert bed.records() == [
        _record(
            protocol_type="consumer",
            generation=1,
            protocol="range",
            leader=leader_id,
            current_state_timestamp_ms=bed.clock.now_ms(),
            members=(_member(leader_id, b"x"), _member(follower_id, b"y")),
        )
    ]


def test_a_group_that_becomes_empty_is_written_with_its_next_generation(bed):
    (member_id,) = bed.stable("a")
    bed.leave((member_id, None, None))
    assert bed.records() == [
        _record(protocol_type="consumer", generation=2, protocol=None, leader=None, current_state_timestamp_ms=bed.clock.now_ms())
    ]


@pytest.mark.parametrize("session_timeout_ms", [6_000, 1_800_000])
def test_the_bounds_of_the_session_timeout_are_allowed(session_timeout_ms):
    answer = Bed().join(session_timeout_ms=session_timeout_ms)
    assert answer.response.error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_a_pending_member_with_an_instance_id_is_not_that_member(bed):
    bed.join(instance_id="rack")
    pending_id = bed.join().response.member_id
    answer = bed.join(pending_id, instance_id="rack")
    assert answer.response.error_code == ErrorCode.FENCED_INSTANCE_ID


def test_the_generation_wraps_to_1(bed):
    (member_id,) = bed.stable("a")
    bed.group().generation = MAX_GENERATION
    answer = bed.join(member_id, client_id="a")
    assert answer.response.generation_id == 1


def test_members_of_one_turn_of_the_loop_make_one_generation_without_a_delay(bed):
    answers = [bed.join(client_id=name, version=3, turn=False) for name in "abc"]
    bed.turn()
    bed.advance(0)
    assert [answer.response.generation_id for answer in answers] == [1, 1, 1]
    assert len(bed.records()) == 1


def test_a_join_that_was_asked_twice_is_answered_twice_and_counted_once(bed):
    member_ids = bed.stable("a", "b")
    first = bed.join(member_ids[0])
    second = bed.join(member_ids[0])
    assert first.response == JOIN.JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member_ids[0])
    assert second.waits
    assert bed.group().waiting_joins == 1
    bed.join(member_ids[1])
    assert (first.answers, second.answers) == (1, 1)


def test_a_rebalance_timeout_of_next_to_nothing_does_not_keep_the_loop_busy(bed):
    for name in ("a", "b"):
        bed.join(instance_id=name, rebalance_timeout_ms=1, session_timeout_ms=60_000, turn=False)
    bed.turn()
    bed.advance(0)
    bed.sync("a-1", 1, {}, instance_id="a")
    bed.leave(("", "b", None))
    bed.advance(10_000)
    waits = [event for _, event, _ in bed.reports.lines if event == "a rebalance keeps waiting: no member has joined"]
    assert 9 <= len(waits) <= 11


def test_a_response_that_brings_the_next_request_at_once_finds_the_group_consistent():
    bed = Bed(group_initial_rebalance_delay_ms=10)
    syncs = []

    def sync_at_once(response):
        if response.error_code == ErrorCode.NONE:
            assignments = {member.member_id: b"x" for member in response.members}
            syncs.append(bed.sync(response.member_id, response.generation_id, assignments, turn=False))

    for name in "abc":
        bed.join(client_id=name, version=3, on_response=sync_at_once)
    bed.advance(30)
    bed.turn()
    assert bed.group().state == "Stable"
    assert [sync.response.assignment for sync in syncs] == [b"x", b"x", b"x"]
    assert bed.faults == []


def test_a_member_that_leaves_as_its_assignment_arrives_begins_the_next_rebalance():
    bed = Bed(group_initial_rebalance_delay_ms=10)
    a, _ = bed.add_member("a")
    b, _ = bed.add_member("b")
    bed.advance(20)
    bed.sync(b, on_response=lambda _: bed.leave((b, None, None), turn=False))
    leader = bed.sync(a, assignments={a: b"x"})
    assert leader.response.assignment == b"x"
    assert bed.heartbeat(a) == ErrorCode.REBALANCE_IN_PROGRESS
    assert bed.faults == []
