"""What a client of ours says to a real broker, odradek or Kafka: versions, a topic, a batch written, and read again."""

import asyncio
from contextlib import asynccontextmanager
from random import Random

from odradek.client.api import Api
from odradek.client.node_client import NodeClient, connect_to
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from odradek.protocol.produce_request import ProduceRequest
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record, build_batch, read_records
from odradek.timing.driver import AsyncioDriver
from odradek.timing.system_clock import SystemClock
from odradek.timing.timer import Timer

CREATE_TOPICS = Api(ApiKey.CREATE_TOPICS)
FETCH_BY_ID = Api(ApiKey.FETCH, 13)
METADATA = Api(ApiKey.METADATA, 10)
PRODUCE_BY_ID = Api(ApiKey.PRODUCE, 13)
API_VERSIONS = Api(ApiKey.API_VERSIONS)

TIMESTAMP = 1_700_000_000_000
# What a client asks again after. Kafka's broker tells of a leader before that leader takes records.
_TRANSIENT = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_ID,
}


@asynccontextmanager
async def clients(host, port, count=1):
    """So many clients of one node, on the machine's clock."""
    timer = Timer(SystemClock())
    driver = AsyncioDriver(timer, asyncio.get_running_loop())
    made = [NodeClient(connect_to(host, port), timer, Random(1)) for _ in range(count)]
    try:
        yield made
    finally:
        for client in made:
            client.close()
        driver.close()
        timer.close()
        # The transports' own end comes with the next turn of the loop.
        await asyncio.sleep(0)


async def create_topic(client, name):
    """The id of a new topic of one partition, when it has a leader."""
    api = messages(ApiKey.CREATE_TOPICS)
    topic = api.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    created = await client.request(CREATE_TOPICS, api.CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    assert created.topics[0].error_code == 0, created
    metadata = messages(ApiKey.METADATA)
    request = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=name)])
    while True:
        [described] = (await client.request(METADATA, request)).topics
        if described.error_code not in _TRANSIENT:
            assert (described.error_code, described.name, len(described.partitions)) == (0, name, 1)
            return described.topic_id


async def produce(client, topic_id, *values):
    """The offset of the first of these records."""
    batch = build_batch([Record(value=value, timestamp=TIMESTAMP) for value in values])
    response = await client.request(PRODUCE_BY_ID, ProduceRequest(None, -1, 10_000, [(topic_id.bytes, [(0, batch)])]))
    partition = response.responses[0].partition_responses[0]
    if partition.error_code in _TRANSIENT:
        return await produce(client, topic_id, *values)
    assert partition.error_code == 0, partition
    return partition.base_offset


def fetch(client, topic_id, offset, max_wait_ms=0):
    """A Fetch under way: of one byte at least, as long as it may wait."""
    api = messages(ApiKey.FETCH)
    partition = api.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topic = api.FetchTopic(topic_id=topic_id, partitions=[partition])
    request = api.FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=[topic])
    return client.request(FETCH_BY_ID, request)


def fetched(response):
    """The values of the records in the response to such a Fetch."""
    partition = response.responses[0].partitions[0]
    assert partition.error_code == 0, partition
    assert type(partition.records) is memoryview
    return [record.value for start, _ in iter_batches(partition.records) for record in read_records(partition.records, start)]


async def writes_and_reads(host, port, name):
    """Versions are asked for, a topic is made, and what is written to it is what is read from it."""
    async with clients(host, port) as [client]:
        versions = await client.request(
            API_VERSIONS,
            messages(ApiKey.API_VERSIONS).ApiVersionsRequest(client_software_name="odradek", client_software_version="1"),
        )
        assert versions.error_code == 0
        assert {ApiKey.PRODUCE, ApiKey.FETCH} <= {api.api_key for api in versions.api_keys}
        topic_id = await create_topic(client, name)
        assert await produce(client, topic_id, b"a", b"b") == 0
        # As large as does not fit into the client's buffer.
        assert await produce(client, topic_id, b"c" * 100_000) == 2
        assert fetched(await fetch(client, topic_id, 0)) == [b"a", b"b", b"c" * 100_000]
        assert fetched(await fetch(client, topic_id, 2)) == [b"c" * 100_000]


async def waits_on_a_connection_of_its_own(host, port, name):
    """A Fetch waits for records while another connection writes them."""
    async with clients(host, port, 2) as [reader, writer]:
        topic_id = await create_topic(writer, name)
        await produce(writer, topic_id, b"first")
        assert fetched(await fetch(reader, topic_id, 0)) == [b"first"]
        waiting = fetch(reader, topic_id, 1, max_wait_ms=20_000)
        await produce(writer, topic_id, b"second")
        assert fetched(await waiting) == [b"second"]


async def pipelines(host, port, name):
    """Requests that are sent together are answered each with its own response."""
    async with clients(host, port) as [client]:
        topic_id = await create_topic(client, name)
        await produce(client, topic_id, b"first")
        offsets = await asyncio.gather(*(produce(client, topic_id, bytes([number])) for number in range(20)))
        assert offsets == list(range(1, 21))
        responses = await asyncio.gather(*(fetch(client, topic_id, offset) for offset in range(21)))
        assert [fetched(response)[:1] for response in responses] == [[b"first"], *([bytes([number])] for number in range(20))]
