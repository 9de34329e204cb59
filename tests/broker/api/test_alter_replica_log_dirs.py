"""AlterReplicaLogDirs: which moves begin, and why others do not."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from odradek.protocol.message_types.describe_log_dirs import DescribeLogDirsRequest
from tests.broker.api.in_process import Node, new_broker


@pytest.fixture
async def node():
    """A broker with two data directories, and with a topic of two partitions."""
    async with new_broker(log_dirs="/data,/more") as broker:
        node = Node(broker)
        await node.create("t", 2)
        await node.produce()
        yield node


async def alter(node, *asked):
    """``asked`` are (path, topic, partitions)."""
    dirs = [
        AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=name, partitions=partitions)])
        for path, name, partitions in asked
    ]
    response = await node.ask(ApiKey.ALTER_REPLICA_LOG_DIRS, AlterReplicaLogDirsRequest(dirs=dirs))
    return {
        topic.topic_name: [(each.partition_index, each.error_code) for each in topic.partitions] for topic in response.results
    }


async def directories(node):
    """{(topic, partition): path}, of partitions that are not on their way."""
    response = await node.ask(ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=None))
    return {
        (topic.name, each.partition_index): result.log_dir
        for result in response.results
        for topic in result.topics
        for each in topic.partitions
        if not each.is_future_key
    }


async def test_a_partition_moves_to_the_directory_that_is_named(node):
    before = await directories(node)
    target = "/more" if before["t", 0] == "/data" else "/data"

    assert await alter(node, (target, "t", (0,))) == {"t": [(0, ErrorCode.NONE)]}
    await node.broker.advance(60_000)
    await node.broker.settle()

    assert await directories(node) == before | {("t", 0): target}


async def test_what_cannot_move_is_told_and_the_others_move(node):
    here = (await directories(node))["t", 1]

    answers = await alter(node, ("/elsewhere", "t", (0,)), (here, "t", (1, 2)), (here, "nowhere", (0,)))

    assert answers == {
        "t": [(0, ErrorCode.LOG_DIR_NOT_FOUND), (1, ErrorCode.NONE), (2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
        "nowhere": [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
    }


async def test_nothing_asked_for_is_nothing_moved(node):
    assert await alter(node) == {}


async def test_a_move_takes_as_long_as_its_rate_wants(node):
    """Three megabytes at 100 kB a second: one at once, and the next one when its sample is over."""
    for _ in range(4):
        await node.produce(values=(b"v" * 800_000,))
    node.core.config.override({"replica.alter.log.dirs.io.max.bytes.per.second": "100000"})
    before = await directories(node)
    target = "/more" if before["t", 0] == "/data" else "/data"

    assert await alter(node, (target, "t", (0,))) == {"t": [(0, ErrorCode.NONE)]}
    took_s = 0
    while (await directories(node))["t", 0] != target:
        await node.broker.advance(1_000)
        await node.broker.settle()
        took_s += 1
        assert took_s < 60

    # Each megabyte counts for the eleven seconds that its sample is kept.
    assert took_s >= 20
    assert node.core.partitions.get("t", 0).log.log_end_offset == 5
