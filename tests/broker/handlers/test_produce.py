"""Produce: each partition's answer, and what is refused before a log sees it."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.compression import ZSTD
from odradek.protocol.errors import ErrorCode
from odradek.protocol.produce_request import ProduceRequest
from odradek.protocol.records import Record, build_batch
from tests.broker.handlers.transaction_requests import described, end, init


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
        "there is no such partition here",
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
