"""Produce: each partition's answer, and what is refused before a log sees it."""

import asyncio
from contextlib import suppress

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.compression import ZSTD
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.produce_request import ProduceRequest
from odradek.protocol.records import Record, build_batch
from tests.broker.api.in_process import Ticking
from tests.broker.api.transaction_requests import described, end, init


def batch(key=None, **fields):
    return build_batch([Record(key=key, value=b"v", timestamp=1)], **fields)


def test_since_version_12_produce_adds_the_partitions_it_writes_to(client, new_id, topic):
    name = new_id()
    producer_id, epoch = init(client, name)
    batch = build_batch(
        [Record(value=b"v", timestamp=1)], producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True
    )
    partitions = [{"index": index, "records": batch} for index in range(2)]
    topics = [{"name": topic[0], "partition_data": partitions}]
    answer = client.call(ApiKey.PRODUCE, 12, transactional_id=name, acks=-1, timeout_ms=5000, topic_data=topics)
    assert [each.error_code for each in answer.responses[0].partition_responses] == [ErrorCode.NONE, ErrorCode.NONE]
    assert list(described(client, name).topics[0].partitions) == [0, 1]
    assert end(client, name, (producer_id, epoch), 5).producer_epoch == 1


async def produce(node, *partitions, version=12, acks=-1, **options):
    """(index, error code, base offset) of each of ``partitions``, (index, records) of the topic "t"."""
    request = ProduceRequest(acks=acks, timeout_ms=1000, topics=[("t", partitions)])
    response = await node.ask(ApiKey.PRODUCE, request, version, **options)
    (topic,) = response.responses
    return [(each.index, each.error_code, each.base_offset) for each in topic.partition_responses]


async def test_each_partition_has_its_own_error(node):
    await node.create("t", 2)

    answers = await produce(node, (1, batch()), (9, batch()), (0, None), (0, batch()))

    assert answers == [
        (1, ErrorCode.NONE, 0),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        (0, ErrorCode.INVALID_RECORD, -1),
        (0, ErrorCode.NONE, 0),
    ]


async def test_a_refusal_tells_its_reason(node):
    await node.create("t")

    answer = await node.produce(index=9)

    assert (answer.error_code, answer.error_message) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "this broker has no such partition",
    )


@pytest.mark.parametrize("acks", [2, -2])
async def test_acks_are_all_one_or_none(node, acks):
    await node.create("t")

    assert await produce(node, (0, batch()), acks=acks) == [(0, ErrorCode.INVALID_REQUIRED_ACKS, -1)]
    assert await produce(node, (0, batch()), acks=1) == [(0, ErrorCode.NONE, 0)]


async def test_acks_0_is_not_answered_and_a_refusal_closes_the_connection(node):
    await node.create("t")
    taken = ProduceRequest(acks=0, topics=[("t", [(0, batch())])])
    refused = ProduceRequest(acks=0, topics=[("t", [(0, batch()), (9, batch())])])

    assert await node.ask(ApiKey.PRODUCE, taken, 12) is None
    with pytest.raises(ConnectionAbortedError):
        await node.ask(ApiKey.PRODUCE, refused, 12)
    assert node.core.partitions.get("t", 0).high_watermark == 2


@pytest.mark.parametrize(
    ("client_id", "error"), [("client", ErrorCode.INVALID_TOPIC_EXCEPTION), ("__admin_client", ErrorCode.NONE)]
)
async def test_only_kafka_s_own_tools_write_to_internal_topics(node, client_id, error):
    await node.stable_member()
    request = ProduceRequest(acks=1, topics=[("__consumer_offsets", [(0, batch(key=b"k"))])])

    response = await node.ask(ApiKey.PRODUCE, request, 12, client_id=client_id)

    assert response.responses[0].partition_responses[0].error_code == error


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_coordinators_serve_on_behind_junk_that_kafka_s_own_tools_have_written(node, is_restarted):
    await node.stable_member()
    producer_id, epoch = await node.producer()
    junk = batch(key=b"k"), batch(key=b"\0\1\0\7gro"), batch(key=b"\0\0\0\2tx")
    for topic in ("__consumer_offsets", "__transaction_state"):
        for index in range(3):
            for records in junk:
                request = ProduceRequest(acks=1, topics=[(topic, [(index, records)])])
                response = await node.ask(ApiKey.PRODUCE, request, 12, client_id="__admin_client")
                assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    if is_restarted:
        await node.restart()
    # Otherwise the coordinators learn by their next write that somebody else has written.
    for _ in range(1000):
        with suppress(AssertionError):
            again = await node.producer()
            await node.stable_member("other")
            break
        await asyncio.sleep(0)

    assert again[0] == producer_id
    assert again[1] > epoch
    told = [line for line in node.broker.lines if "unreadable records" in line.event]
    assert {line.fields["topic"] for line in told} == {"__consumer_offsets", "__transaction_state"}
    assert all("CORRUPT_MESSAGE: the first is at offset " in line.fields["reason"] for line in told)


@pytest.mark.parametrize(("version", "error"), [(6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, ErrorCode.NONE)])
async def test_zstd_is_taken_since_version_7(node, version, error):
    await node.create("t")

    ((_, code, _),) = await produce(node, (0, batch(compression=ZSTD)), version=version)

    assert code == error


async def test_since_version_13_topics_are_named_by_their_ids(node):
    topic_id = await node.create("t")
    request = ProduceRequest(acks=1, topics=[(topic_id.bytes, [(0, batch()), (9, batch())]), (bytes(15) + b"7", [(0, batch())])])

    known, unknown = (await node.ask(ApiKey.PRODUCE, request, 13)).responses

    assert (known.topic_id, known.name) == (topic_id, "")
    assert [each.error_code for each in known.partition_responses] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert [each.error_code for each in unknown.partition_responses] == [ErrorCode.UNKNOWN_TOPIC_ID]


async def test_the_answer_waits_for_the_flush(node):
    await node.create("t", flush_messages="1")
    request = ProduceRequest(acks=-1, timeout_ms=1000, topics=[("t", [(0, batch()), (9, batch())])])

    answer = node.broker.send(ApiKey.PRODUCE, request, 12)

    assert not answer.done
    response = await node.broker.wait(answer, 500)
    assert [(each.index, each.error_code) for each in response.responses[0].partition_responses] == [
        (0, ErrorCode.NONE),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def many(count=5_000, timestamp=1, **fields):
    """A batch that takes long to open."""
    return build_batch([Record(key=b"k", timestamp=timestamp)] * count, **fields)


async def test_a_batch_that_takes_long_to_open_has_its_place_in_the_response(node):
    await node.create("t", 3, cleanup_policy="compact")

    answers = await produce(node, (2, batch(b"k")), (0, many()), (9, many()), (1, many(600)), (2, batch(b"k")))

    assert answers == [
        (2, ErrorCode.NONE, 0),
        (0, ErrorCode.NONE, 0),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        (1, ErrorCode.NONE, 0),
        (2, ErrorCode.NONE, 1),
    ]
    assert [node.core.partitions.get("t", index).high_watermark for index in range(3)] == [5_000, 600, 2]


async def test_a_batch_that_takes_long_to_open_is_refused_for_its_records(node):
    await node.create("t", 2, cleanup_policy="compact")
    keyless = build_batch([Record(timestamp=1)] * 5_000)

    request = ProduceRequest(acks=-1, timeout_ms=1000, topics=[("t", [(0, keyless), (1, many())])])
    response = await node.ask(ApiKey.PRODUCE, request, 12)

    refused, taken = response.responses[0].partition_responses
    assert (refused.error_code, len(refused.record_errors)) == (ErrorCode.INVALID_RECORD, 100)
    assert (taken.error_code, taken.base_offset) == (ErrorCode.NONE, 0)
    assert node.core.partitions.get("t", 0).high_watermark == 0


async def test_acks_0_closes_the_connection_for_a_long_batch_that_is_refused(node):
    await node.create("t", cleanup_policy="compact")
    keyless = build_batch([Record(timestamp=1)] * 5_000)

    assert await node.ask(ApiKey.PRODUCE, ProduceRequest(acks=0, topics=[("t", [(0, many())])]), 12) is None
    with pytest.raises(ConnectionAbortedError):
        await node.ask(ApiKey.PRODUCE, ProduceRequest(acks=0, topics=[("t", [(0, keyless)])]), 12)


async def test_a_long_batch_of_a_topic_with_its_own_codec_is_appended_in_that(node):
    await node.create("t", compression_type="zstd")

    assert await produce(node, (0, many(compression=1))) == [(0, ErrorCode.NONE, 0)]

    partition = node.core.partitions.get("t", 0)
    assert partition.log.size_bytes < 20_000
    assert partition.high_watermark == 5_000


@pytest.mark.parametrize("version", [9, 12])
async def test_a_long_batch_takes_part_in_its_transaction(node, version):
    await node.create("t", cleanup_policy="compact")
    producer_id, epoch = await node.producer()
    fields = {"producer_id": producer_id, "producer_epoch": epoch, "transactional": True}
    first = ProduceRequest("tx", -1, 1000, [("t", [(0, many(base_sequence=0, **fields))])])

    if version < 12:
        topics = [AddPartitionsToTxnTopic(name="t", partitions=[0])]
        transaction = AddPartitionsToTxnTransaction(
            transactional_id="tx", producer_id=producer_id, producer_epoch=epoch, topics=topics
        )
        await node.ask(ApiKey.ADD_PARTITIONS_TO_TXN, AddPartitionsToTxnRequest(transactions=[transaction]), 3)
    response = await node.ask(ApiKey.PRODUCE, first, version)

    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    partition = node.core.partitions.get("t", 0)
    assert (partition.high_watermark, partition.last_stable_offset) == (5_000, 0)


async def test_a_batch_that_is_opened_when_the_broker_stops_is_for_another_leader(node):
    await node.create("t", cleanup_policy="compact")
    asked = asyncio.ensure_future(produce(node, (0, many(50_000)), (0, many())))
    await asyncio.sleep(0)
    node.core.inspections.close()

    assert await asked == [(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)] * 2


def refusals(node):
    """The fields of each refused produce in the log."""
    return [line.fields for line in node.broker.lines if line.event == "a produce was refused"]


async def test_a_topic_id_that_nobody_knows_is_logged_as_kafka_writes_it(node):
    request = ProduceRequest(acks=-1, timeout_ms=1000, topics=[(bytes(range(16)), [(0, batch())])])

    await node.ask(ApiKey.PRODUCE, request, 13)

    assert [fields["topic"] for fields in refusals(node)] == ["AAECAwQFBgcICQoLDA0ODw"]


async def test_refusals_of_one_client_are_logged_ten_times_and_counted_then(node):
    for _ in range(50):
        await node.produce("nowhere")
    node.broker.clock.advance(10_000)
    await node.produce("nowhere")

    assert [fields.get("left_out") for fields in refusals(node)] == [None] * 10 + [40]


async def test_many_partitions_are_answered_in_their_order(node):
    await node.create("t", 100)
    await node.create("u", 100)
    here = [(index, batch()) for index in range(100)]
    elsewhere = [(index, batch()) for index in range(95, 105)]
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topics=[("t", here), ("nowhere", elsewhere), ("u", elsewhere), ("t", here)]
    )

    response = await node.ask(ApiKey.PRODUCE, request, 12)

    answers = [
        (topic.name, [(each.index, each.error_code, each.base_offset) for each in topic.partition_responses])
        for topic in response.responses
    ]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answers == [
        ("t", [(index, ErrorCode.NONE, 0) for index in range(100)]),
        ("nowhere", [(index, unknown, -1) for index in range(95, 105)]),
        ("u", [(index, ErrorCode.NONE, 0) if index < 100 else (index, unknown, -1) for index in range(95, 105)]),
        ("t", [(index, ErrorCode.NONE, 1) for index in range(100)]),
    ]


async def test_many_partitions_wait_for_those_that_take_long_to_open(node):
    await node.create("t", 100, cleanup_policy="compact")
    batches = [(index, many() if index % 30 == 0 else batch(b"k")) for index in range(100)]

    assert await produce(node, *batches, *batches) == [
        (index, ErrorCode.NONE, offset * (5_000 if index % 30 == 0 else 1)) for offset in range(2) for index in range(100)
    ]


async def test_many_partitions_are_flushed_together(node):
    await node.create("t", 100, flush_messages="1")

    assert await produce(node, *[(index, batch()) for index in range(100)]) == [
        (index, ErrorCode.NONE, 0) for index in range(100)
    ]


async def test_acks_0_closes_the_connection_for_one_of_many(node):
    await node.create("t", 100)
    batches = [(index, batch()) for index in range(100)]

    assert await node.ask(ApiKey.PRODUCE, ProduceRequest(acks=0, topics=[("t", batches)]), 12) is None
    with pytest.raises(ConnectionAbortedError):
        await node.ask(ApiKey.PRODUCE, ProduceRequest(acks=0, topics=[("t", [*batches, (100, batch())])]), 12)


async def test_many_partitions_are_appended_to_in_several_turns_of_the_loop(node):
    await node.create("t", 200)
    turns = []
    node.core.clock = Ticking(node.core.clock)
    soon, node.core.call_soon = node.core.call_soon, lambda callback: (turns.append(1), soon(callback))

    answers = await produce(node, *[(index, batch()) for index in range(200)])

    assert answers == [(index, ErrorCode.NONE, 0) for index in range(200)]
    assert len(turns) > 1
