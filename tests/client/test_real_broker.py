"""The client and a broker of ours, over a socket."""

import asyncio

import pytest

from odradek.client.api import Api, ConnectFailed, Disconnected, UnsupportedVersion
from odradek.client.blocking import BlockingClient
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages
from tests.client import conversation
from tests.client.conversation import clients, create_topic, fetch, fetched, produce

METADATA = Api(ApiKey.METADATA)
MetadataRequest = messages(ApiKey.METADATA).MetadataRequest


async def test_what_is_written_is_read(broker, new_name):
    await conversation.writes_and_reads(broker.host, broker.port, new_name())


async def test_a_fetch_waits_while_another_connection_writes(broker, new_name):
    await conversation.waits_on_a_connection_of_its_own(broker.host, broker.port, new_name())


async def test_pipelined_requests_are_answered_each_with_its_own_response(broker, new_name):
    await conversation.pipelines(broker.host, broker.port, new_name())


async def test_a_broker_that_was_killed_is_found_again(broker_process, new_name):
    broker = broker_process()
    async with clients(broker.host, broker.port) as [client]:
        topic_id = await create_topic(client, new_name())
        await produce(client, topic_id, b"before")
        waiting = fetch(client, topic_id, 1, max_wait_ms=60_000)
        await asyncio.to_thread(broker.kill9)
        with pytest.raises(Disconnected):
            await waiting
        with pytest.raises(ConnectFailed, match="refused"):
            await client.request(METADATA, MetadataRequest())
        await asyncio.to_thread(broker.start)
        assert fetched(await fetch(client, topic_id, 0)) == [b"before"]


def test_the_blocking_client_asks_one_thing_after_the_other(broker):
    client = BlockingClient(broker.host, broker.port, "blocking", 10.0)
    try:
        assert [node.port for node in client.call(METADATA, MetadataRequest()).brokers] == [broker.port]
        assert client.serves(METADATA)
        beyond = Api(ApiKey.METADATA, 99, 99)
        assert not client.serves(beyond)
        with pytest.raises(UnsupportedVersion):
            client.call(beyond, MetadataRequest())
        assert client.call(METADATA, MetadataRequest()).cluster_id
    finally:
        client.close()
