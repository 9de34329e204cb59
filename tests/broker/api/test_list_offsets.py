"""ListOffsets: which offset a timestamp stands for, from which version on, and what is refused."""

from types import SimpleNamespace

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.produce_request import ProduceRequest
from odradek.protocol.record_batch import HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC, batch_crc, read_header, sealed
from odradek.protocol.records import Record, build_batch

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)


async def listed(node, *asked, version=None, topic="t", **fields):
    """(error code, timestamp, offset, leader epoch) of each partition answered; ``asked`` are (partition, timestamp)."""
    partitions = [ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index, timestamp in asked]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=partitions)], **{"replica_id": -1} | fields)
    (answer,) = (await node.ask(ApiKey.LIST_OFFSETS, request, version)).topics
    assert answer.name == topic
    return [(each.error_code, each.timestamp, each.offset, each.leader_epoch) for each in answer.partitions]


@pytest.fixture
async def three_records(node):
    """Offsets 0, 1 and 2 of partition 0, at 10, 30 and 20 ms."""
    await node.create("t")
    for timestamp in (10, 30, 20):
        assert (await node.produce(timestamp=timestamp)).error_code == ErrorCode.NONE


@pytest.mark.usefixtures("three_records")
@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (LATEST, (-1, 3, 0)),
        (EARLIEST, (-1, 0, 0)),
        (EARLIEST_LOCAL, (-1, 0, 0)),
        (MAX_TIMESTAMP, (30, 1, 0)),
        (LATEST_TIERED, (-1, -1, -1)),
        (EARLIEST_PENDING_UPLOAD, (-1, -1, -1)),
        (0, (10, 0, 0)),
        (11, (30, 1, 0)),
        (31, (-1, -1, -1)),
    ],
)
async def test_a_timestamp_stands_for_an_offset(node, asked, found):
    assert await listed(node, (0, asked)) == [(ErrorCode.NONE, *found)]


@pytest.mark.usefixtures("three_records")
@pytest.mark.parametrize(
    ("timestamp", "since"), [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (EARLIEST_PENDING_UPLOAD, 11)]
)
async def test_a_special_timestamp_has_no_meaning_before_its_version(node, timestamp, since):
    ((before, *rest),) = await listed(node, (0, timestamp), version=since - 1)
    ((after, *_),) = await listed(node, (0, timestamp), version=since)

    assert (before, rest, after) == (ErrorCode.UNSUPPORTED_VERSION, [-1, -1, -1], ErrorCode.NONE)


@pytest.mark.usefixtures("three_records")
async def test_a_timestamp_that_nobody_knows_is_unsupported(node):
    assert await listed(node, (0, -7)) == [(ErrorCode.UNSUPPORTED_VERSION, -1, -1, -1)]


@pytest.mark.usefixtures("three_records")
async def test_a_partition_named_twice_is_refused_once_and_the_others_are_answered(node):
    await node.create("u", 2)

    twice = await listed(node, (1, LATEST), (0, LATEST), (1, EARLIEST), topic="u")

    assert twice == [(ErrorCode.INVALID_REQUEST, -1, -1, -1), (ErrorCode.NONE, -1, 0, 0)]


@pytest.mark.parametrize(("topic", "index"), [("nowhere", 0), ("t", 1)])
async def test_a_partition_that_is_not_there_is_unknown(node, topic, index):
    await node.create("t")

    assert await listed(node, (index, LATEST), topic=topic) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1)]


@pytest.mark.usefixtures("three_records")
@pytest.mark.parametrize(("epoch", "error"), [(-1, ErrorCode.NONE), (0, ErrorCode.NONE), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)])
async def test_a_client_s_idea_of_the_leader_epoch_is_checked(node, epoch, error):
    asked = ListOffsetsPartition(partition_index=0, current_leader_epoch=epoch, timestamp=LATEST)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[asked])])

    (answer,) = (await node.ask(ApiKey.LIST_OFFSETS, request)).topics[0].partitions

    assert (answer.error_code, answer.offset) == (error, -1 if error else 3)


@pytest.mark.usefixtures("three_records")
@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST, MAX_TIMESTAMP, LATEST_TIERED, 0])
@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (3, ErrorCode.FENCED_LEADER_EPOCH),
        (4, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (5, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_a_follower_tells_no_offset(node, timestamp, epoch, error):
    node.core.partitions.get("t", 0).become_follower(2, 4)
    asked = ListOffsetsPartition(partition_index=0, current_leader_epoch=epoch, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[asked])])

    (answer,) = (await node.ask(ApiKey.LIST_OFFSETS, request)).topics[0].partitions

    assert (answer.error_code, answer.timestamp, answer.offset, answer.leader_epoch) == (error, -1, -1, -1)


@pytest.mark.usefixtures("three_records")
async def test_a_follower_tells_offsets_for_debugging(node):
    node.core.partitions.get("t", 0).become_follower(2, 4)

    assert await listed(node, (0, LATEST), replica_id=-2) == [(ErrorCode.NONE, -1, 3, 4)]


async def test_read_committed_ends_where_an_open_transaction_begins(node):
    await node.create("t")
    await node.produce()
    producer_id, epoch = await node.producer()
    in_transaction = build_batch(
        [Record(value=b"v", timestamp=50)], producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True
    )
    await node.produce(transactional_id="tx", topics=[("t", [(0, in_transaction)])])

    for timestamp, committed, uncommitted in (
        (LATEST, (-1, 1), (-1, 2)),
        (50, (-1, -1), (50, 1)),
        (MAX_TIMESTAMP, (-1, -1), (50, 1)),
    ):
        ((_, *read_committed, _),) = await listed(node, (0, timestamp), isolation_level=1)
        ((_, *read_uncommitted, _),) = await listed(node, (0, timestamp), isolation_level=0)
        assert (tuple(read_committed), tuple(read_uncommitted)) == (committed, uncommitted)


def long_batch(claimed=None, compression=4):
    """5,000 records, each a millisecond younger than the one before; the header may claim another timestamp."""
    batch = bytearray(build_batch([Record(timestamp=index, value=b"v") for index in range(5_000)], compression=compression))
    if claimed is not None:
        header = read_header(batch)._replace(max_timestamp=claimed)
        HEADER.pack_into(batch, 0, *header)
        HEADER.pack_into(batch, 0, *header._replace(crc=batch_crc(batch, 0, len(batch))))
    return bytes(batch)


async def append(node, batch, index=0):
    (topic,) = (await node.ask(ApiKey.PRODUCE, ProduceRequest(acks=1, topics=[("t", [(index, batch)])]), 12)).responses
    assert topic.partition_responses[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize("compression", [0, 4])
async def test_records_that_take_long_to_look_through_are_found(node, compression):
    await node.create("t", 3)
    for index in range(2):
        await append(node, long_batch(compression=compression), index)
        await node.produce(index=index, timestamp=9_000)

    asked = [(0, 4_321), (1, MAX_TIMESTAMP), (2, 4_321), (1, 5_000)]

    assert await listed(node, asked[0], asked[1], asked[2]) == [
        (ErrorCode.NONE, 4_321, 4_321, 0),
        (ErrorCode.NONE, 9_000, 5_000, 0),
        (ErrorCode.NONE, -1, -1, -1),
    ]
    assert await listed(node, asked[3]) == [(ErrorCode.NONE, 9_000, 5_000, 0)]


async def test_batches_that_claim_a_timestamp_that_none_of_their_records_has_are_passed_by(node):
    await node.create("t")
    for _ in range(3):
        await append(node, long_batch(claimed=8_000))
    for _ in range(20):
        batch = bytearray(build_batch([Record(timestamp=1)]))
        header = read_header(batch)._replace(max_timestamp=8_000)
        HEADER.pack_into(batch, 0, *header)
        HEADER.pack_into(batch, 0, *header._replace(crc=batch_crc(batch, 0, len(batch))))
        await append(node, bytes(batch))
    await node.produce(timestamp=7_500)

    assert await listed(node, (0, 7_000)) == [(ErrorCode.NONE, 7_500, 15_020, 0)]
    assert await listed(node, (0, MAX_TIMESTAMP)) == [(ErrorCode.NONE, -1, -1, -1)]


@pytest.mark.parametrize("count", [1, 2_000, 2**31 - 1])
@pytest.mark.parametrize("codec", [0, 4])
async def test_a_stored_batch_that_cannot_be_read_is_passed_by(node, count, codec):
    await node.create("t")
    await node.produce(timestamp=1_000)
    log = node.core.partitions.require("t", 0).log
    payload = b"\xff" * 50
    fields = (1, HEADER_SIZE - LOG_OVERHEAD + len(payload), 0, MAGIC, 0, codec, count - 1, 2_000, 2_000, -1, -1, -1, count)
    # As an earlier version has taken it, or a leader of one.
    log.append_as_follower(sealed(HEADER.pack(*fields), payload), leader_epoch=0, now_ms=0)
    await node.produce(timestamp=2_000)

    assert await listed(node, (0, 1_500)) == [(ErrorCode.NONE, 2_000, 1 + count, 0)]
    assert await listed(node, (0, 3_000)) == [(ErrorCode.NONE, -1, -1, -1)]
    assert await listed(node, (0, 500)) == [(ErrorCode.NONE, 1_000, 0, 0)]


@pytest.mark.usefixtures("three_records")
@pytest.mark.parametrize(
    ("timestamp", "told"),
    [
        (LATEST, (ErrorCode.OFFSET_NOT_AVAILABLE, -1, -1, -1)),
        (1 << 60, (ErrorCode.OFFSET_NOT_AVAILABLE, -1, -1, -1)),
        (EARLIEST, (ErrorCode.NONE, -1, 0, 0)),
    ],
)
async def test_a_new_leader_tells_no_end_until_it_knows_what_is_replicated(node, timestamp, told):
    """Its high watermark may be behind what clients have seen at the leader before (KIP-207)."""
    partition = node.core.partitions.get("t", 0)
    partition.high_watermark = 1
    partition.leader.followers = SimpleNamespace(epoch_start_offset=3)
    assert await listed(node, (0, timestamp)) == [told]
    older = (ErrorCode.LEADER_NOT_AVAILABLE, *told[1:]) if told[0] else told
    assert await listed(node, (0, timestamp), version=4) == [older]
    partition.high_watermark = 3
    assert (await listed(node, (0, timestamp)))[0][0] == ErrorCode.NONE
