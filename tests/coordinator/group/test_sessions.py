import pytest

from odradek.protocol.errors import ErrorCode
from tests.coordinator.group.bed import Bed


@pytest.fixture
def bed():
    return Bed()


def test_heartbeats_do_not_touch_the_timer(bed):
    (member_id,) = bed.stable("a")
    sequence = bed.timer._sequence
    for _ in range(1_000):
        bed.heartbeat(member_id)
    assert bed.timer._sequence == sequence


def test_heartbeats_keep_a_member_for_as_long_as_they_come(bed):
    (member_id,) = bed.stable("a")
    for _ in range(100):
        bed.advance(9_999)
        assert bed.heartbeat(member_id) == ErrorCode.NONE


def test_a_session_ends_exactly_its_timeout_after_the_last_sign_of_life(bed):
    member_ids = bed.stable("a", "b", session_timeout_ms=10_000)
    bed.advance(7_001)
    for member_id in member_ids:
        bed.heartbeat(member_id)
    bed.advance(9_999)
    assert len(bed.group().members) == 2
    bed.advance(1)
    assert len(bed.group().members) == 0


def test_a_shorter_session_timeout_holds_from_when_it_is_said(bed):
    (member_id,) = bed.stable("a", session_timeout_ms=60_000)
    bed.join(member_id, session_timeout_ms=6_000)
    bed.advance(6_000)
    assert bed.group().state == "Empty"


def test_a_sync_of_a_stable_member_is_a_sign_of_life(bed):
    (member_id,) = bed.stable("a")
    bed.advance(9_000)
    bed.sync(member_id)
    bed.advance(9_000)
    assert bed.heartbeat(member_id) == ErrorCode.NONE


def test_a_join_that_is_answered_at_once_is_a_sign_of_life(bed):
    leader, follower = bed.stable("a", "b")
    bed.advance(9_000)
    bed.heartbeat(leader)
    bed.join(follower)
    bed.advance(9_000)
    assert bed.heartbeat(follower) == ErrorCode.NONE


def test_a_heartbeat_of_another_generation_is_none(bed):
    (member_id,) = bed.stable("a")
    bed.advance(9_000)
    assert bed.heartbeat(member_id, 7) == ErrorCode.ILLEGAL_GENERATION
    bed.advance(1_000)
    assert bed.group().state == "Empty"


def test_who_waits_for_a_rebalance_is_not_late_and_is_watched_again_afterwards(bed):
    a, b = bed.stable("a", "b", session_timeout_ms=10_000, rebalance_timeout_ms=60_000)
    waiting = bed.join(a)
    for _ in range(5):
        bed.advance(9_000)
        bed.heartbeat(b)
    assert waiting.waits
    bed.join(b)
    assert waiting.response.error_code == ErrorCode.NONE
    bed.advance(10_000)
    assert a not in bed.group().members


def test_a_member_whose_session_ran_out_while_it_waited_is_watched_again_when_it_is_sent_back():
    bed = Bed(group_initial_rebalance_delay_ms=10)
    for name in ("a", "b"):
        bed.join(instance_id=name, rebalance_timeout_ms=600_000)
    bed.advance(20)
    waiting = bed.sync("b-2", instance_id="b")
    for _ in range(3):
        bed.advance(9_000)
        bed.heartbeat("a-1", instance_id="a")
    bed.join("a-1", instance_id="a", protocols=[("range", b"other")], rebalance_timeout_ms=600_000)
    assert waiting.response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    bed.advance(9_999)
    assert "b-2" in bed.group().members
    bed.advance(1)
    assert "b-2" not in bed.group().members


def test_a_former_static_member_s_session_is_not_the_new_one_s(bed):
    bed.join(instance_id="rack")
    bed.advance(0)
    bed.sync("rack-1", 1, {}, instance_id="rack")
    bed.advance(9_000)
    bed.join(instance_id="rack")
    bed.advance(9_000)
    assert bed.heartbeat("rack-2", instance_id="rack") == ErrorCode.NONE


def test_nothing_is_set_for_a_group_that_is_empty(bed):
    member_ids = bed.stable("a", "b")
    bed.leave(*((member_id, None, None) for member_id in member_ids))
    context = bed.shard.classic.timers
    assert not any(
        context.is_scheduled(key) for key in [("join", "g"), ("sync", "g"), *(("session", "g", m) for m in member_ids)]
    )


def test_expired_sessions_are_counted(bed):
    bed.stable("a", "b")
    bed.advance(10_000)
    assert bed.shard.classic.counters.sessions_expired == 2
