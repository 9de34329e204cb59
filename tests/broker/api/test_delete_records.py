import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.broker.api.bed import ask, create
from tests.broker.slow_broker import slow_broker

M = messages(ApiKey.DELETE_RECORDS)


def delete(broker, topic, offset, partition=0):
    partitions = [M.DeleteRecordsPartition(partition_index=partition, offset=offset)]
    (answer,) = ask(broker, ApiKey.DELETE_RECORDS, topics=[M.DeleteRecordsTopic(name=topic, partitions=partitions)]).topics
    (result,) = answer.partitions
    assert (answer.name, result.partition_index) == (topic, partition)
    return result.low_watermark, result.error_code


@pytest.mark.parametrize(("offset", "low_watermark"), [(0, 0), (2, 2), (3, 3), (-1, 3)])
def test_records_before_an_offset_are_deleted(core, offset, low_watermark):
    create(core, "t", records=3)
    assert delete(core, "t", offset) == (low_watermark, ErrorCode.NONE)
    assert core.log_manager.logs["t", 0].log_start_offset == low_watermark


def test_what_is_gone_stays_gone(core):
    create(core, "t", records=3)
    delete(core, "t", 2)
    assert delete(core, "t", 1) == (2, ErrorCode.NONE)


@pytest.mark.parametrize("offset", [4, -2, 2**63 - 1])
def test_an_offset_that_is_not_there_is_out_of_range(core, offset):
    create(core, "t", records=3)
    assert delete(core, "t", offset) == (-1, ErrorCode.OFFSET_OUT_OF_RANGE)


def test_a_topic_that_is_only_compacted_keeps_its_records(core):
    create(core, "t", 1, ("cleanup.policy", "compact"))
    assert delete(core, "t", 0) == (-1, ErrorCode.POLICY_VIOLATION)


@pytest.mark.parametrize("policy", ["compact,delete", ""])
def test_a_topic_that_is_not_only_compacted_may_lose_records(core, policy):
    create(core, "t", 1, ("cleanup.policy", policy))
    assert delete(core, "t", 0) == (0, ErrorCode.NONE)


def test_an_internal_topic_keeps_its_records(core):
    create(core, "__consumer_offsets")
    assert delete(core, "__consumer_offsets", 0) == (-1, ErrorCode.INVALID_TOPIC_EXCEPTION)


@pytest.mark.parametrize(("topic", "partition"), [("nope", 0), ("t", 1), ("t", -1)])
def test_a_partition_that_is_not_there_is_unknown(core, topic, partition):
    create(core, "t")
    assert delete(core, topic, 0, partition) == (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_an_offline_partition_is_a_storage_error(core):
    create(core, "t")
    core.partitions.get("t", 0).take_offline("disk")
    assert delete(core, "t", 0) == (-1, ErrorCode.KAFKA_STORAGE_ERROR)


def test_a_follower_deletes_no_records(core):
    create(core, "t", records=3)
    core.partitions.get("t", 0).become_follower(2, 4)
    assert delete(core, "t", 2) == (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert core.log_manager.logs["t", 0].log_start_offset == 0


def test_nothing_is_deleted_where_the_directory_has_just_failed_and_keeps_no_offsets(core):
    create(core, "t", records=3)
    manager = core.log_manager
    manager.home_of(manager.logs["t", 0]).fail("it can not be written")
    assert delete(core, "t", 2) == (-1, ErrorCode.KAFKA_STORAGE_ERROR)
    assert manager.logs["t", 0].log_start_offset == 0


async def test_many_topics_of_one_partition_are_answered_over_several_turns():
    topics = [
        M.DeleteRecordsTopic(name=f"t{number}", partitions=[M.DeleteRecordsPartition(partition_index=0, offset=0)])
        for number in range(50)
    ]
    async with slow_broker() as broker:
        answer = broker.send(ApiKey.DELETE_RECORDS, M.DeleteRecordsRequest(topics=topics, timeout_ms=1000), 2)
        assert not answer.done
        response = await broker.wait(answer)
    assert [topic.name for topic in response.topics] == [f"t{number}" for number in range(50)]
