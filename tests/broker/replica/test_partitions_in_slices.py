"""The logs of many partitions are created and deleted in slices, in order, and each change is finished or overtaken."""

import asyncio

import pytest

from odradek.controller.metadata.decisions import NewTopic
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.message_types.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.message_types.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.slow_broker import slow_broker

MANY = 200


@pytest.fixture
async def broker():
    async with slow_broker() as broker:
        yield broker


def create(broker, name="t", count=MANY):
    (result,) = broker.core.controller.create_topics([NewTopic(name=name, partition_count=count)]).response
    return result.topic_id


def led(broker, name="t"):
    return len(broker.core.partitions.of_topic(name))


def logs(broker):
    return {key for key in broker.core.log_manager.logs if not key[0].startswith("__")}


async def caught_up(broker):
    while broker.core.slices.is_busy:  # noqa: ASYNC110  turns of the loop, in which no time is waited for
        await asyncio.sleep(0)


async def test_many_partitions_are_led_over_several_turns(broker):
    create(broker)
    assert 0 < led(broker) < MANY
    await caught_up(broker)
    assert led(broker) == MANY


async def test_few_partitions_are_led_at_once(broker):
    create(broker, count=16)
    assert led(broker) == 16


async def test_the_answer_comes_when_all_are_led_and_metadata_says_which_are_not(broker):
    asked = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=MANY, replication_factor=1)])
    answer = broker.send(ApiKey.CREATE_TOPICS, asked, 7)
    assert not answer.done
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    (topic,) = (await broker.ask(ApiKey.METADATA, request, 12)).topics
    assert len(topic.partitions) == MANY
    assert topic.partitions[-1].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    response = await broker.wait(answer)
    assert [each.error_code for each in response.topics] == [ErrorCode.NONE]
    assert led(broker) == MANY


async def test_the_answer_to_a_deletion_comes_when_the_logs_are_gone(broker):
    create(broker)
    await caught_up(broker)
    answer = broker.send(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6)
    assert not answer.done
    assert (led(broker), bool(logs(broker))) == (0, True)
    assert [each.error_code for each in (await broker.wait(answer)).responses] == [ErrorCode.NONE]
    assert logs(broker) == set()


async def test_a_topic_deleted_before_its_partitions_were_led_leaves_nothing(broker):
    topic_id = create(broker)
    broker.core.controller.delete_topics([topic_id])
    await caught_up(broker)
    assert (led(broker), logs(broker)) == (0, set())


@pytest.mark.parametrize("count", [1, MANY])
async def test_a_topic_of_the_same_name_gets_logs_of_its_own(broker, count):
    old = create(broker)
    await caught_up(broker)
    broker.core.controller.delete_topics([old])
    new = create(broker, count=count)
    await caught_up(broker)
    assert {partition.topic_id for partition in broker.core.partitions} == {new}
    assert {log.topic_id for log in broker.core.log_manager.logs.values()} == {new}
    assert logs(broker) == {("t", index) for index in range(count)}
    assert [line for line in broker.lines if line.level == "error"] == []


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_a_start_finishes_what_a_kill_has_left(broker, is_deleted):
    topic_id = create(broker)
    if is_deleted:
        await caught_up(broker)
        broker.core.controller.delete_topics([topic_id])
        assert logs(broker)
    else:
        assert led(broker) < MANY
    broker.kill()
    await broker.start()
    assert led(broker) == len(logs(broker)) == (0 if is_deleted else MANY)


async def test_the_garbage_collector_is_told_of_each_thousand_partitions(broker):
    told = []
    broker.core.partition_directories.on_many_created = lambda: told.append(led(broker))
    broker.core.controller.create_topics([NewTopic(name="t", partition_count=2_500)])
    await caught_up(broker)
    assert told == [1_000, 2_000]
