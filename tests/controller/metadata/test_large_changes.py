"""Changes of the metadata with thousands of records: committed in slices, in order with those that are asked for meanwhile."""

import asyncio

import pytest

from odradek.controller.metadata.alterations import APPEND
from odradek.controller.metadata.decisions import NewTopic
from odradek.controller.metadata.image import TOPIC_RESOURCE
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.message_types.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.slow_broker import slow_broker

MANY = 2_000


@pytest.fixture
async def broker():
    async with slow_broker() as broker:
        yield broker


def create(broker, name="t", count=MANY):
    return broker.core.controller.create_topics([NewTopic(name=name, partition_count=count)])


async def done(reply):
    while not reply.done:  # noqa: ASYNC110  turns of the loop, in which no time is waited for
        await asyncio.sleep(0)
    return reply.response


async def test_a_large_change_takes_several_turns_and_is_seen_whole(broker):
    reply = create(broker)
    image = broker.core.controller.image
    seen = set()
    while not reply.done:
        seen.add(len(image.topics["t"].partitions) if "t" in image.topics else 0)
        await asyncio.sleep(0)
    assert seen == {0}
    assert reply.response[0].error is None
    assert len(image.topics["t"].partitions) == MANY


async def test_what_is_asked_for_meanwhile_is_decided_afterwards_and_in_order(broker):
    controller = broker.core.controller
    large = create(broker)
    again = create(broker, count=1)
    small = create(broker, "small", 1)
    block = controller.allocate_producer_id_block()
    assert not any(reply.done for reply in (large, again, small, block))
    (result,) = await done(again)
    assert result.error.code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert large.done
    assert (await done(small))[0].error is None
    assert len(await done(block)) > 0
    assert list(controller.image.topics)[-2:] == ["t", "small"]


async def test_a_topic_is_deleted_once_however_often_it_is_asked_for_meanwhile(broker):
    controller = broker.core.controller
    (old,) = await done(create(broker, "old", 1))
    create(broker)
    first, second = controller.delete_topics([old.topic_id]), controller.delete_topics([old.topic_id])
    config = controller.alter_configs([(TOPIC_RESOURCE, "old", "retention.ms", "1")])
    assert await done(first) == {old.topic_id}
    assert await done(second) == set()
    assert await done(config) is None
    assert controller.image.configs(TOPIC_RESOURCE, "old") == {}


async def test_changes_of_one_config_meanwhile_are_all_made(broker):
    await done(create(broker, "old", 1))
    create(broker)
    name = "leader.replication.throttled.replicas"
    replies = []
    for entry in ("0:1", "1:2"):
        configs = [AlterableConfig(name=name, config_operation=APPEND, value=entry)]
        resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name="old", configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[resource])
        replies.append(broker.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, 1))
    for reply in replies:
        assert [each.error_code for each in (await done(reply)).responses] == [ErrorCode.NONE]
    assert broker.core.controller.image.configs(TOPIC_RESOURCE, "old") == {name: "0:1,1:2"}


async def test_a_topic_that_another_has_deleted_meanwhile_has_its_answer(broker):
    (old,) = await done(create(broker, "old", 1))
    create(broker)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="old")])
    replies = [broker.send(ApiKey.DELETE_TOPICS, request, 6) for _ in range(2)]
    told = [[(each.name, each.topic_id, each.error_code) for each in (await done(reply)).responses] for reply in replies]
    assert told == [[("old", old.topic_id, ErrorCode.NONE)], [("old", old.topic_id, ErrorCode.UNKNOWN_TOPIC_ID)]]


async def test_a_topic_wanted_by_many_meanwhile_is_created_once(broker):
    controller = broker.core.controller
    create(broker)
    replies = [controller.ensure_internal_topic("__consumer_offsets") for _ in range(3)]
    assert len({(await done(reply)).topic_id for reply in replies}) == 1


async def test_a_change_that_a_kill_interrupts_leaves_nothing(broker):
    reply = create(broker)
    assert not reply.done
    broker.kill()
    await broker.start()
    assert "t" not in broker.core.controller.image.topics


async def test_a_large_change_is_there_after_a_restart(broker):
    await done(create(broker))
    broker.kill()
    await broker.start()
    assert len(broker.core.controller.image.topics["t"].partitions) == MANY


async def test_many_topics_are_decided_on_over_several_turns_and_created_together(broker):
    controller = broker.core.controller
    reply = controller.create_topics([NewTopic(name=f"t{number}") for number in range(MANY)])
    twice = controller.create_topics([NewTopic(name=f"t{number}") for number in range(MANY)])
    assert not reply.done
    assert "t0" not in controller.image.topics
    assert all(result.error is None for result in await done(reply))
    assert {result.error.code for result in await done(twice)} == {ErrorCode.TOPIC_ALREADY_EXISTS}
    assert sum(name.startswith("t") for name in controller.image.topics) == MANY
