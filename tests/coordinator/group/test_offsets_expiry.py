"""When offsets expire (KIP-211), and with them their group."""

import pytest

from odradek.coordinator.runtime.result import CoordinatorRecord
from odradek.protocol.coordinator_records import GroupMetadataKey, OffsetCommitKey
from odradek.protocol.errors import ErrorCode
from tests.coordinator.group.offsets_bed import DAY_MS, subscription

RETENTION_MS = 7 * DAY_MS
INTERVAL_MS = 600_000
PROTOCOLS = (("range", subscription("t")),)


def stay(bed, member_ids, duration_ms, generation=1):
    """Let time pass with all members sending heartbeats."""
    end_ms = bed.clock.now_ms() + duration_ms
    while bed.clock.now_ms() < end_ms:
        bed.advance(int(min(INTERVAL_MS, end_ms - bed.clock.now_ms())))
        for member_id in member_ids:
            assert bed.heartbeat(member_id, generation) == ErrorCode.NONE


def test_an_offset_of_a_simple_group_expires_after_its_commit_and_the_group_with_the_last(bed):
    bed.commit({0: 10})
    bed.advance(DAY_MS)
    bed.commit({1: 11})
    bed.records()

    bed.advance(RETENTION_MS - DAY_MS)
    assert bed.records() == [CoordinatorRecord(OffsetCommitKey("g", "t", 0), None)]
    assert bed.fetch_all() == {"t": {1: 11}}

    bed.advance(DAY_MS)
    assert bed.records() == [
        CoordinatorRecord(OffsetCommitKey("g", "t", 1), None),
        CoordinatorRecord(GroupMetadataKey("g"), None),
    ]
    assert bed.group() is None


def test_an_offset_does_not_expire_before_its_time(bed):
    bed.commit({0: 10})

    bed.advance(RETENTION_MS - INTERVAL_MS)

    assert bed.fetch(0) == [10]


def test_a_group_that_emptied_keeps_its_offsets_from_that_moment_on(bed):
    (member_id,) = bed.stable("c", session_timeout_ms=1_000_000)
    bed.commit({0: 10}, member_id=member_id, generation=1)
    stay(bed, [member_id], DAY_MS)
    bed.leave((member_id, None, None))

    bed.advance(RETENTION_MS - INTERVAL_MS)
    assert bed.fetch(0) == [10]

    bed.advance(2 * INTERVAL_MS)
    assert bed.fetch(0) == [-1]
    assert bed.group() is None


def test_an_active_subscription_protects_its_topics_and_no_others(bed):
    (member_id,) = bed.stable("c", session_timeout_ms=1_000_000, protocols=PROTOCOLS)
    bed.commit({0: 10}, member_id=member_id, generation=1)
    bed.commit({0: 20}, topic="u", member_id=member_id, generation=1)

    stay(bed, [member_id], RETENTION_MS + INTERVAL_MS)

    assert bed.fetch_all() == {"t": {0: 10}}
    assert bed.group() is not None


@pytest.mark.parametrize("protocol_type", ["connect", "consumer"], ids=["no consumers", "unreadable subscriptions"])
def test_offsets_of_members_whose_topics_are_not_known_do_not_expire(bed, protocol_type):
    (member_id,) = bed.stable("c", session_timeout_ms=1_000_000, protocol_type=protocol_type)
    bed.commit({0: 10}, member_id=member_id, generation=1)

    stay(bed, [member_id], RETENTION_MS + INTERVAL_MS)

    assert bed.fetch(0) == [10]


def test_an_expire_timestamp_comes_before_the_retention(bed):
    bed.commit({0: 10}, retention_time_ms=DAY_MS, version=4)
    bed.commit({1: 11})

    bed.advance(DAY_MS + INTERVAL_MS)

    assert bed.fetch(0, 1) == [-1, 11]


def test_an_expire_timestamp_survives_a_restart(bed):
    bed.commit({0: 10}, retention_time_ms=DAY_MS, version=4)

    bed.restart()
    bed.turn()
    bed.advance(DAY_MS + INTERVAL_MS)

    assert bed.fetch(0) == [-1]


def test_an_empty_group_without_offsets_vanishes(bed):
    (member_id,) = bed.consumers("c")
    bed.leave((member_id, None, None))

    bed.advance(INTERVAL_MS)

    assert bed.records()[-1] == CoordinatorRecord(GroupMetadataKey("g"), None)
    assert bed.group() is None


def test_a_group_with_members_stays_without_offsets(bed):
    (member_id,) = bed.stable("c", session_timeout_ms=1_000_000)

    stay(bed, [member_id], INTERVAL_MS)

    assert bed.group() is not None


@pytest.mark.parametrize(("groups", "offsets"), [(30, 200), (1, 6_000), (2, 2_000)])
def test_many_offsets_expire_some_in_each_turn_of_the_loop(bed, groups, offsets):
    for number in range(groups):
        bed.commit(dict.fromkeys(range(offsets), 10), group_id=f"g{number}", retention_time_ms=1, version=4)
    bed.records()
    bed.advance(INTERVAL_MS - 1)
    assert bed.records() == []
    turns = []
    while sum(turns) < groups * (offsets + 1):
        bed.advance(1)
        turns.append(len(bed.records()))
    assert len(turns) > 1
    assert max(turns) <= 2_000 + min(offsets, 2_000)
    assert [bed.group(f"g{number}") for number in range(groups)] == [None] * groups


def test_an_offset_that_is_committed_between_the_turns_of_an_expiry_stays_with_its_group(bed):
    bed.commit(dict.fromkeys(range(3_000), 10), retention_time_ms=1, version=4)
    bed.advance(INTERVAL_MS)
    assert len(bed.fetch_all()["t"]) == 1_000

    bed.commit({0: 20, 2_999: 21})
    bed.advance(INTERVAL_MS - 1)

    assert bed.fetch_all() == {"t": {0: 20, 2_999: 21}}


def test_an_expiry_that_the_log_refuses_is_tried_again(bed):
    bed.commit({0: 10}, retention_time_ms=DAY_MS, version=4)
    bed.log.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    bed.advance(DAY_MS + INTERVAL_MS)
    assert bed.fetch(0) == [10]

    bed.log.failure = None
    bed.advance(INTERVAL_MS)

    assert bed.fetch(0) == [-1]


def test_nothing_expires_once_the_shard_is_gone(bed):
    bed.commit({0: 10})
    bed.records()

    bed.unload()
    bed.advance(2 * RETENTION_MS)

    assert bed.records() == []
