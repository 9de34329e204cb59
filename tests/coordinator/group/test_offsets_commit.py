"""OffsetCommit: what is written, who may commit, and what happens when the log does not take it."""

import pytest

from odradek.coordinator.group.classic.states import GroupState
from odradek.coordinator.group.offsets import OffsetConfig, offset_tombstone
from odradek.coordinator.runtime.result import CoordinatorRecord, CoordinatorResult
from odradek.protocol.coordinator_records import GroupMetadataKey, OffsetCommitKey, OffsetCommitValue
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.offset_commit import OffsetCommitResponse
from odradek.timing.reply import Reply
from tests.coordinator.group.offsets_bed import TOPIC_ID, OffsetsBed


def test_a_commit_is_answered_and_written_partition_by_partition(bed):
    now_ms = bed.clock.now_ms()

    assert bed.commit({0: 10, 3: 13}, metadata="m") == [ErrorCode.NONE] * 2

    assert bed.records() == [
        CoordinatorRecord(OffsetCommitKey("g", "t", 0), OffsetCommitValue(10, 5, "m", now_ms, -1, TOPIC_ID)),
        CoordinatorRecord(OffsetCommitKey("g", "t", 3), OffsetCommitValue(13, 5, "m", now_ms, -1, TOPIC_ID)),
    ]


def test_metadata_that_is_null_is_kept_as_none_at_all(bed):
    bed.commit({0: 10}, metadata=None)

    assert bed.records()[0].value.metadata == ""


def test_answers_to_large_commits_are_not_kept(bed):
    def answer(first, count):
        partitions = dict.fromkeys(range(first, first + count), 1)
        response = bed.ask_to_commit(partitions).response
        assert [partition.error_code for partition in response.topics[0].partitions] == [ErrorCode.NONE] * count
        return response

    assert answer(0, 3) is answer(0, 3)
    assert answer(0, 100) is not answer(0, 100)
    assert type(answer(0, 100)) is OffsetCommitResponse


def test_a_retention_time_becomes_an_expire_timestamp(bed):
    bed.commit({0: 10}, retention_time_ms=1_000, version=4)

    assert bed.records()[0].value.expire_timestamp_ms == bed.clock.now_ms() + 1_000


def test_a_retention_time_beyond_all_time_is_for_ever(bed):
    bed.commit({0: 10}, retention_time_ms=2**63 - 1, version=4)

    assert bed.records()[0].value.expire_timestamp_ms == 2**63 - 1


def test_metadata_too_large_is_refused_for_its_partition_alone():
    bed = OffsetsBed(OffsetConfig(offset_metadata_max_bytes=3))
    request = bed.ask_to_commit({0: 1}, metadata="four")
    bed.commit({1: 2}, metadata="333")

    assert [partition.error_code for partition in request.response.topics[0].partitions] == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert bed.fetch(0, 1) == [-1, 2]


def test_the_answer_waits_until_the_commit_is_in_the_log(bed):
    answer = bed.ask_to_commit({0: 10}, turn=False)
    assert answer.waits

    bed.turn()

    assert not answer.waits


def test_a_commit_that_the_log_refuses_is_taken_back(bed):
    bed.commit({0: 10})
    bed.log.failure = ErrorCode.NOT_ENOUGH_REPLICAS

    assert bed.commit({0: 20, 1: 21}) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bed.commit({0: 1}, group_id="new") == ErrorCode.COORDINATOR_NOT_AVAILABLE

    assert bed.fetch_latest(0, 1) == [10, -1]
    assert bed.fetch_all("new") == {}
    assert bed.group("new") is None


def test_commits_survive_a_restart(bed):
    bed.commit({0: 10, 1: 11})
    bed.commit({1: 12}, topic="u")
    bed.commit({0: 5}, group_id="h")
    bed.commit({0: 20})

    bed.restart()
    bed.turn()

    assert bed.fetch_all() == {"t": {0: 20, 1: 11}, "u": {1: 12}}
    assert bed.fetch_all("h") == {"t": {0: 5}}
    assert len(bed.committed) == 4


# ------------------------------------------------------------------------------------------------------- who may commit


def test_a_commit_without_a_generation_makes_a_simple_group(bed):
    bed.commit({0: 10})

    group = bed.group()
    assert group.protocol_type is None
    assert group.state is GroupState.EMPTY


@pytest.mark.parametrize(
    ("version", "error"),
    [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND), (10, ErrorCode.GROUP_ID_NOT_FOUND)],
)
def test_a_member_of_a_group_that_is_not_there_cannot_commit(bed, version, error):
    assert bed.commit({0: 10}, member_id="m", generation=1, version=version) == error
    assert bed.group() is None


def test_a_member_of_the_generation_commits(bed):
    (member_id,) = bed.consumers("c")

    assert bed.commit({0: 10}, member_id=member_id, generation=1) == [ErrorCode.NONE]


@pytest.mark.parametrize(
    ("identity", "error"),
    [
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": -1}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 1, "member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 1, "member_id": ""}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": -1, "member_id": ""}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 1, "instance_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_nobody_else_commits_to_a_group_with_members(bed, identity, error):
    (member_id,) = bed.consumers("c")

    assert bed.commit({0: 10}, **{"member_id": member_id, **identity}) == error
    assert bed.fetch(0) == [-1]


def test_who_was_replaced_under_its_instance_id_is_fenced(bed):
    joined = bed.join(instance_id="i")
    bed.advance(0)
    former = joined.response.member_id
    bed.sync(former, assignments={former: b""}, instance_id="i")
    bed.join(instance_id="i")

    assert bed.commit({0: 10}, member_id=former, generation=1, instance_id="i") == ErrorCode.FENCED_INSTANCE_ID


def test_a_commit_between_join_and_sync_is_put_off(bed):
    member_id, _ = bed.add_member()
    bed.advance(0)
    assert bed.group().state is GroupState.COMPLETING_REBALANCE

    assert bed.commit({0: 10}, member_id=member_id, generation=1) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_while_others_join_is_taken(bed):
    (member_id,) = bed.consumers("c")
    bed.add_member("d")
    assert bed.group().state is GroupState.PREPARING_REBALANCE

    assert bed.commit({0: 10}, member_id=member_id, generation=1) == [ErrorCode.NONE]


def test_anybody_commits_to_a_group_whose_members_have_left(bed):
    (member_id,) = bed.consumers("c")
    bed.leave((member_id, None, None))

    assert bed.commit({0: 10}) == [ErrorCode.NONE]
    assert bed.commit({0: 10}, member_id=member_id, generation=1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_keeps_its_member_alive(bed):
    (member_id,) = bed.consumers("c")

    for offset in range(3):
        bed.advance(9_000)
        assert bed.commit({0: offset}, member_id=member_id, generation=1) == [ErrorCode.NONE]
    bed.advance(10_001)

    assert bed.group().state is GroupState.EMPTY


def test_who_waits_for_a_commit_is_told_that_the_shard_went_away(bed):
    answer = bed.ask_to_commit({0: 10}, turn=False)

    bed.unload()

    assert isinstance(answer.response, KafkaError)
    assert answer.response.code == ErrorCode.NOT_COORDINATOR


def test_offsets_outlive_a_classic_group_that_kafka_has_made_one_of_a_newer_protocol(bed):
    (member_id,) = bed.stable("a")
    bed.commit({0: 5}, member_id=member_id, generation=bed.group().generation)
    tombstone = CoordinatorRecord(GroupMetadataKey("g"), None)
    bed.write(lambda _shard: CoordinatorResult([tombstone], None), Reply())
    bed.restart()
    assert bed.shard.groups.find_stored("g").protocol_type is None
    assert bed.committed.get("g", "t", 0).offset == 5
    bed.write(lambda shard: shard.delete_group("g"), Reply())
    assert bed.records()[-2:] == [offset_tombstone("g", "t", 0), tombstone]
    assert bed.shard.groups.find_stored("g") is None


def test_a_group_that_another_commit_found_before_its_append_failed_is_forgotten(bed):
    bed.log.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    for partition in (0, 1):
        bed.ask_to_commit({partition: 1}, turn=False)
    assert bed.group() is not None

    bed.turn()

    assert bed.group() is None
