"""OffsetForLeaderEpoch: where an epoch ended, or why that cannot be said."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


async def ends(node, *asked, topic="t", version=None):
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=asked)])
    (answer,) = (await node.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, request, version)).topics
    assert answer.topic == topic
    return answer.partitions


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_the_epoch_under_way_ends_at_the_end_of_the_log(node, version):
    await node.create("t", 2)
    await node.produce(index=1, values=(b"a", b"b"))

    asked = [OffsetForLeaderPartition(partition=index, leader_epoch=0) for index in (1, 0)]

    assert await ends(node, *asked, version=version) == [
        EpochEndOffset(partition=1, leader_epoch=0, end_offset=2),
        EpochEndOffset(partition=0, leader_epoch=0, end_offset=0),
    ]


async def test_of_an_epoch_that_has_not_begun_nothing_is_known(node):
    await node.create("t")
    await node.produce()

    (answer,) = await ends(node, OffsetForLeaderPartition(partition=0, leader_epoch=7))

    assert answer == EpochEndOffset(partition=0, leader_epoch=-1, end_offset=-1)


@pytest.mark.parametrize(("epoch", "error"), [(-1, ErrorCode.NONE), (0, ErrorCode.NONE), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)])
async def test_a_client_s_idea_of_the_leader_epoch_is_checked(node, epoch, error):
    await node.create("t")

    (answer,) = await ends(node, OffsetForLeaderPartition(partition=0, current_leader_epoch=epoch, leader_epoch=0))

    assert (answer.error_code, answer.end_offset) == (error, -1 if error else 0)


@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (3, ErrorCode.FENCED_LEADER_EPOCH),
        (4, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (5, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_a_follower_tells_of_no_epoch(node, epoch, error):
    await node.create("t")
    node.core.partitions.get("t", 0).become_follower(2, 4)

    (answer,) = await ends(node, OffsetForLeaderPartition(partition=0, current_leader_epoch=epoch, leader_epoch=0))

    assert answer == EpochEndOffset(error_code=error, partition=0)


@pytest.mark.parametrize(("topic", "index"), [("nowhere", 0), ("t", 1)])
async def test_a_partition_that_is_not_there_is_unknown(node, topic, index):
    await node.create("t")

    (answer,) = await ends(node, OffsetForLeaderPartition(partition=index, leader_epoch=0), topic=topic)

    assert answer == EpochEndOffset(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partition=index)
