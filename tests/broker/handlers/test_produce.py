"""Produce: each partition's answer, and what is refused before a log sees it."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Record, build_batch
from tests.broker.handlers.transaction_requests import described, end, init


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
