"""What a Fetch response counts for is its size."""

from uuid import UUID

from odradek.broker.quotas.fetch_size import fetch_response_bytes
from odradek.broker.replica.fetch_partitions import FetchPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.fetch import AbortedTransaction, FetchableTopicResponse, FetchResponse, PartitionData
from odradek.protocol.message_types.fetch import FetchPartition as Asked
from odradek.protocol.responses import response_encoder
from tests.cases import each_case

TOPIC_ID = UUID(int=7)
PARTITIONS = (
    PartitionData(partition_index=0, records=bytes(5)),
    PartitionData(partition_index=1, records=bytes(300), aborted_transactions=[AbortedTransaction(1, 2)]),
    PartitionData(partition_index=2, records=b""),
)


@each_case("version", range(4, 19))
@each_case("partitions", [PARTITIONS, PARTITIONS[:1], ()])
def test_the_size_is_that_of_the_body_and_four_bytes(version, partitions):
    key = TOPIC_ID if version >= 13 else "a topic"
    results = [(FetchPartition(key, Asked(partition=data.partition_index)), data) for data in partitions]
    named = (TOPIC_ID, "") if version >= 13 else (None, "a topic")
    topics = [FetchableTopicResponse(topic_id=named[0], partitions=list(partitions), topic=named[1])] if partitions else []
    encoded = response_encoder(ApiKey.FETCH, version)(1, FetchResponse(responses=topics))
    header_bytes = 9 if version >= 12 else 8
    assert fetch_response_bytes(version, results) == sum(map(len, encoded)) - header_bytes + 4
