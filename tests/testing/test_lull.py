"""While a clock is moved, no client is heard: what arrives is begun afterwards, and who waits for an answer is not idle."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.testing.listening import ListeningBroker
from tests.raw_client import decode_response, encode_request

MINUTE_MS = 60_000


@pytest.fixture
async def broker():
    async with ListeningBroker(topics={"t": 1}) as broker:
        yield broker


@asynccontextmanager
async def connection(broker):
    host, port = broker.bootstrap_servers.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    yield reader, writer
    writer.close()
    await writer.wait_closed()


async def read_response(reader, api_key, version):
    frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
    return decode_response(api_key, version, frame)[1]


async def until_heard(broker, count):
    while sum(each.is_busy for each in broker.core.connections) < count:  # noqa: ASYNC110  turns of the loop
        await asyncio.sleep(0)


def poll(max_wait_ms):
    partition = {
        "partition": 0,
        "current_leader_epoch": -1,
        "fetch_offset": 0,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": 100,
    }
    topics = [{"topic": "t", "partitions": [partition]}]
    return encode_request(
        ApiKey.FETCH, 12, topics=topics, max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1 << 20, session_epoch=-1
    )


async def test_a_request_that_arrives_while_time_passes_is_begun_when_it_has_passed(broker):
    answers, answered_meanwhile = [], []
    frame = encode_request(ApiKey.METADATA, 9, topics=None)[4:]
    broker.core.timer.call_after(30 * MINUTE_MS, lambda: answers.append(broker.send_bytes(frame)))
    broker.core.timer.call_after(59 * MINUTE_MS, lambda: answered_meanwhile.append(answers[0].done))
    await broker.clock.advance(hours=1)
    assert answered_meanwhile == [False]
    assert [topic.name for topic in decode_response(ApiKey.METADATA, 9, await answers[0])[1].topics] == ["t"]


async def test_a_client_that_polls_is_answered_in_time_and_keeps_its_connection_while_a_silent_one_loses_its_own(broker):
    async with connection(broker) as (polling, to_broker), connection(broker) as (silent, _):
        to_broker.write(poll(max_wait_ms=5 * MINUTE_MS))
        await until_heard(broker, 1)
        await broker.clock.advance(days=1)
        assert (await read_response(polling, ApiKey.FETCH, 12)).error_code == 0
        assert await silent.read() == b""
        to_broker.write(poll(max_wait_ms=0))
        assert (await read_response(polling, ApiKey.FETCH, 12)).error_code == 0
        assert (broker.core.connections.closed_idle, len(broker.core.connections)) == (1, 1)
