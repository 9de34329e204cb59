"""Offsets that are deleted: by OffsetDelete, with their group, with their topic."""

from odradek.coordinator.runtime.result import CoordinatorRecord
from odradek.protocol.coordinator_records import GroupMetadataKey, OffsetCommitKey
from odradek.protocol.errors import ErrorCode
from tests.coordinator.group.offsets_bed import OTHER_TOPIC_ID, TOPIC_ID


def tombstone(partition, topic="t", group_id="g"):
    return CoordinatorRecord(OffsetCommitKey(group_id, topic, partition), None)


def test_an_offset_is_deleted_by_a_tombstone(bed):
    bed.commit({0: 10, 1: 11})
    bed.records()

    assert bed.delete(0) == [ErrorCode.NONE]

    assert bed.records() == [tombstone(0)]
    assert bed.fetch(0, 1) == [-1, 11]


def test_a_partition_without_an_offset_is_deleted_without_a_record(bed):
    bed.commit({0: 10})
    bed.records()

    assert bed.delete(5, 5) == [ErrorCode.NONE] * 2
    assert bed.records() == []


def test_an_offset_named_twice_goes_once(bed):
    bed.commit({0: 10})
    bed.records()

    bed.delete(0, 0)

    assert bed.records() == [tombstone(0)]


def test_nothing_is_deleted_of_a_group_that_is_not_there(bed):
    assert bed.delete(0) == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_topic_that_a_member_reads_keeps_its_offsets(bed):
    (member_id,) = bed.consumers("c", topics=["t"])
    bed.commit({0: 10}, member_id=member_id, generation=1)
    bed.commit({0: 20}, topic="u", member_id=member_id, generation=1)

    assert bed.delete(0) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    assert bed.delete(0, topic="u") == [ErrorCode.NONE]

    assert bed.fetch_all() == {"t": {0: 10}}


def test_a_group_of_other_members_than_consumers_keeps_its_offsets(bed):
    (member_id,) = bed.stable("c", protocol_type="connect")
    bed.commit({0: 10}, member_id=member_id, generation=1)

    assert bed.delete(0) == ErrorCode.NON_EMPTY_GROUP

    bed.leave((member_id, None, None))
    assert bed.delete(0) == [ErrorCode.NONE]


def test_a_deletion_that_the_log_refuses_is_taken_back(bed):
    bed.commit({0: 10, 1: 11})
    bed.commit({0: 12}, topic="u")
    bed.log.failure = ErrorCode.NOT_ENOUGH_REPLICAS

    assert bed.delete(0, 1) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    bed.delete_group()

    assert bed.fetch_all() == {"t": {0: 10, 1: 11}, "u": {0: 12}}


def test_a_deleted_group_takes_its_offsets_along(bed):
    bed.commit({0: 10})
    bed.commit({1: 11}, topic="u")
    bed.commit({0: 12}, group_id="h")
    bed.records()

    bed.delete_group()

    assert bed.records() == [tombstone(0), tombstone(1, "u"), CoordinatorRecord(GroupMetadataKey("g"), None)]
    assert bed.fetch_all() == {}
    assert bed.fetch_all("h") == {"t": {0: 12}}


def test_a_deleted_topic_takes_its_offsets_along_whatever_the_group(bed):
    bed.commit({0: 10, 1: 11})
    bed.commit({0: 12}, topic="u")
    bed.commit({0: 13}, group_id="h")
    (member_id,) = bed.consumers("c", topics=["t"])
    bed.commit({2: 14}, member_id=member_id, generation=1)
    bed.records()

    bed.delete_topic("t")

    assert set(bed.records()) == {tombstone(0), tombstone(1), tombstone(2), tombstone(0, group_id="h")}
    assert bed.fetch_all() == {"u": {0: 12}}


def test_a_deleted_topic_leaves_the_offsets_of_another_of_its_name(bed):
    bed.commit({0: 10}, topic_id=TOPIC_ID)
    bed.commit({1: 11}, topic_id=OTHER_TOPIC_ID)
    bed.commit({2: 12}, topic_id=None)

    bed.delete_topic("t", TOPIC_ID)

    assert bed.fetch_all() == {"t": {1: 11}}


def test_what_was_deleted_stays_so_after_a_restart(bed):
    bed.commit({0: 10, 1: 11})
    bed.delete(0)
    bed.commit({0: 20}, group_id="h")
    bed.delete_group("h")

    bed.restart()
    bed.turn()

    assert bed.fetch_all() == {"t": {1: 11}}
    assert bed.group("h") is None
