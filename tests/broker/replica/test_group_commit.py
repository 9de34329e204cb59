"""``flush.messages`` with many producers: who waits for which sync, what is seen meanwhile, and what a failed sync does."""

import asyncio
import threading
from contextlib import asynccontextmanager

import pytest

from odradek.broker.start.broker_server import BrokerServer
from odradek.broker.start.shared_server import SharedServer
from odradek.common.config.broker_config import load
from odradek.controller.metadata.decisions import NewTopic
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Record, build_batch
from tests.memory_filesystem import MemoryFile, MemoryFileSystem
from tests.raw_client import decode_response, encode_request, produce_fields

TIMEOUT_S = 10
pytestmark = pytest.mark.timeout(3 * TIMEOUT_S)
FETCH, PRODUCE = 12, 9


class Disk:
    """Syncs of the flush threads: each waits for ``let_go``, and fails where there is an ``error``."""

    def __init__(self):
        self.syncs = 0
        self.begun = threading.Semaphore(0)
        self.error = None
        self._may_end = threading.Semaphore(0)

    def sync(self):
        if threading.current_thread().name.startswith("flush"):
            self.syncs += 1
            self.begun.release()
            self._may_end.acquire(timeout=TIMEOUT_S)
            if self.error is not None:
                raise self.error

    def let_go(self, syncs=1000):
        self._may_end.release(syncs)

    def hold(self):
        """From now on they wait again."""
        while self._may_end.acquire(blocking=False) or self.begun.acquire(blocking=False):
            pass

    async def a_sync(self):
        """Wait until one more has begun."""
        assert await asyncio.to_thread(self.begun.acquire, timeout=TIMEOUT_S)


class Client:
    """Sends without waiting, reads answers in order."""

    def __init__(self, reader, writer):
        self._reader = reader
        self.writer = writer
        self._asked = []

    def send(self, api_key, version, **fields):
        self._asked.append((api_key, version))
        self.writer.write(encode_request(api_key, version, len(self._asked), **fields))

    def produce(self, *, partition=0, acks=-1, count=1, **batch):
        records = build_batch([Record(timestamp=1, value=b"v")] * count, **batch)
        self.send(ApiKey.PRODUCE, PRODUCE, **produce_fields("t", records, partition=partition, acks=acks))
        if acks == 0:
            self._asked.pop()

    def commit(self, offset, *, group="g"):
        partitions = [{"partition_index": 0, "committed_offset": offset}]
        self.send(ApiKey.OFFSET_COMMIT, 8, group_id=group, topics=[{"name": "t", "partitions": partitions}])

    async def committed(self):
        """The error of the next answer, to a commit."""
        return (await self.receive()).topics[0].partitions[0].error_code

    def fetch_offset(self, *, group="g"):
        self.send(ApiKey.OFFSET_FETCH, 5, group_id=group, topics=[{"name": "t", "partition_indexes": (0,)}])

    async def fetched_offset(self):
        """(error, committed offset) of the next answer."""
        answer = await self.receive()
        return answer.error_code, *(partition.committed_offset for topic in answer.topics for partition in topic.partitions)

    def fetch(self, offset=0, *, max_wait_ms=0):
        asked = {"topic": "t", "partitions": [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}]}
        self.send(ApiKey.FETCH, FETCH, max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=[asked])

    async def receive(self):
        size = int.from_bytes(await asyncio.wait_for(self._reader.readexactly(4), TIMEOUT_S), "big")
        return decode_response(*self._asked.pop(0), await self._reader.readexactly(size))[1]

    async def produced(self):
        """(error, base offset) of the next answer."""
        answer = (await self.receive()).responses[0].partition_responses[0]
        return answer.error_code, answer.base_offset

    async def fetched(self):
        """(error, high watermark, whether there are records) of the next answer."""
        answer = (await self.receive()).responses[0].partitions[0]
        return answer.error_code, answer.high_watermark, bool(answer.records)


@pytest.fixture
def disk(monkeypatch):
    disk = Disk()
    monkeypatch.setattr(MemoryFile, "sync", lambda _: disk.sync())
    yield disk
    disk.let_go()


@pytest.fixture
async def server(disk):
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": "/data", "offsets.topic.num.partitions": "1"}
    overrides = settings | {"log.flush.interval.messages": "1"}
    server = await BrokerServer.start(SharedServer(load(overrides=overrides), file_system=MemoryFileSystem()))
    yield server
    disk.let_go()
    await server.stop()


@pytest.fixture
async def connect(server):
    """Makes a client."""
    clients = []

    async def connect():
        clients.append(Client(*await asyncio.open_connection(*server.bound_address)))
        return clients[-1]

    yield connect
    for client in clients:
        client.writer.close()


@pytest.fixture(autouse=True)
async def topic(server, flush_messages):
    """Topic t, which flushes after each record, or as the test says."""
    configs = [("flush.messages", flush_messages)]
    server.broker.controller.create_topics([NewTopic("t", partition_count=2, configs=configs)])


@pytest.fixture
def flush_messages():
    return "1"


@asynccontextmanager
async def nothing_comes(client):
    """While this lasts, no answer does."""
    answer = asyncio.ensure_future(client._reader.readexactly(1))
    yield
    assert not answer.done()
    answer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answer


async def appended(server, count):
    """Wait until partition 0 has ``count`` records, synced or not."""
    log = server.broker.partitions.require("t", 0).log
    async with asyncio.timeout(TIMEOUT_S):
        while log.log_end_offset < count:  # noqa: ASYNC110  an append is no event
            await asyncio.sleep(0)


@pytest.mark.parametrize("acks", [1, -1])
async def test_an_acknowledgement_waits_for_the_sync(disk, connect, acks):
    client, other = await connect(), await connect()
    client.produce(acks=acks)
    await disk.a_sync()
    async with nothing_comes(client):
        # The loop goes on meanwhile.
        other.send(ApiKey.API_VERSIONS, 3, client_software_name="t", client_software_version="1")
        await other.receive()
    disk.let_go()
    assert await client.produced() == (ErrorCode.NONE, 0)


async def test_consumers_see_what_is_on_disk(disk, connect):
    producer, consumer, waiting = await connect(), await connect(), await connect()
    producer.produce()
    await disk.a_sync()
    consumer.fetch()
    assert await consumer.fetched() == (ErrorCode.NONE, 0, False)
    waiting.fetch(max_wait_ms=60_000)
    disk.let_go()
    assert await waiting.fetched() == (ErrorCode.NONE, 1, True)


async def test_what_comes_during_a_sync_shares_the_next_one(server, disk, connect):
    first = await connect()
    others = [await connect() for _ in range(10)]
    first.produce()
    await disk.a_sync()
    for client in others:
        client.produce()
    await appended(server, 11)
    disk.let_go(1)
    assert await first.produced() == (ErrorCode.NONE, 0)
    await disk.a_sync()
    disk.let_go(1)
    assert sorted([await client.produced() for client in others]) == [(ErrorCode.NONE, offset) for offset in range(1, 11)]
    assert disk.syncs == 2


async def test_produces_of_one_connection_share_a_sync_and_are_answered_in_order(disk, connect):
    client = await connect()
    for sequence in range(50):
        client.produce(producer_id=7, producer_epoch=0, base_sequence=sequence)
    disk.let_go()
    assert [await client.produced() for _ in range(50)] == [(ErrorCode.NONE, offset) for offset in range(50)]
    assert disk.syncs < 10


async def test_other_requests_of_a_connection_wait_for_the_produces_before_them(disk, connect):
    client = await connect()
    client.produce()
    client.fetch()
    client.produce()
    await disk.a_sync()
    disk.let_go()
    assert await client.produced() == (ErrorCode.NONE, 0)
    assert await client.fetched() == (ErrorCode.NONE, 1, True)
    assert await client.produced() == (ErrorCode.NONE, 1)


async def test_a_refused_produce_is_answered_in_its_place(disk, connect):
    client = await connect()
    client.produce()
    client.produce(partition=9)
    client.produce()
    disk.let_go()
    assert await client.produced() == (ErrorCode.NONE, 0)
    assert (await client.produced())[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await client.produced() == (ErrorCode.NONE, 1)


async def test_a_slow_partition_holds_up_no_other(disk, connect):
    slow, fast = await connect(), await connect()
    slow.produce(partition=0)
    await disk.a_sync()
    fast.produce(partition=1)
    await disk.a_sync()
    async with nothing_comes(fast):
        pass
    disk.let_go()
    assert await fast.produced() == (ErrorCode.NONE, 0)
    assert await slow.produced() == (ErrorCode.NONE, 0)


async def test_acks_0_is_flushed_and_not_answered(disk, connect):
    client = await connect()
    client.produce(acks=0)
    client.produce(acks=-1)
    disk.let_go()
    assert await client.produced() == (ErrorCode.NONE, 1)


@pytest.mark.parametrize("flush_messages", ["3"])
async def test_fewer_than_flush_messages_wait_for_nothing(disk, connect):
    client = await connect()
    client.produce(count=2)
    assert await client.produced() == (ErrorCode.NONE, 0)
    assert disk.syncs == 0
    client.produce()
    await disk.a_sync()
    # Two are not on disk, and may be; a third is not acknowledged before they are.
    async with nothing_comes(client):
        pass
    disk.let_go()
    assert await client.produced() == (ErrorCode.NONE, 2)


async def test_a_sync_that_fails_is_told_to_all_who_waited_and_takes_the_log_out_of_service(disk, server, connect, capsys):
    first, second = await connect(), await connect()
    first.produce()
    await disk.a_sync()
    second.produce()
    second.fetch()
    disk.error = OSError(5, "Input/output error")
    disk.let_go()
    assert (await first.produced())[0] == ErrorCode.KAFKA_STORAGE_ERROR
    assert (await second.produced())[0] == ErrorCode.KAFKA_STORAGE_ERROR
    first.produce()
    assert (await first.produced())[0] == ErrorCode.KAFKA_STORAGE_ERROR
    assert server.broker.partitions.require("t", 0).high_watermark == 0


async def coordinated(connect, disk):
    """A client whose coordinator is there."""
    client = await connect()
    disk.let_go()
    client.send(ApiKey.FIND_COORDINATOR, 3, key="g", key_type=0)
    await client.receive()
    while True:
        client.commit(1)
        if await client.committed() == ErrorCode.NONE:
            break
        await asyncio.sleep(0.01)
    disk.hold()
    return client


async def test_a_committed_offset_is_acknowledged_and_told_when_it_is_on_disk(disk, connect):
    client = await coordinated(connect, disk)
    other = await connect()
    client.commit(7)
    await disk.a_sync()
    other.fetch_offset()
    assert await other.fetched_offset() == (ErrorCode.NONE, 1)
    async with nothing_comes(client):
        pass
    disk.let_go()
    assert await client.committed() == ErrorCode.NONE
    other.fetch_offset()
    assert await other.fetched_offset() == (ErrorCode.NONE, 7)


async def test_where_a_commit_cannot_be_synced_nobody_is_kept_waiting(disk, connect, capsys):
    client = await coordinated(connect, disk)
    other = await connect()
    client.commit(7)
    await disk.a_sync()
    other.commit(8)
    disk.error = OSError(5, "Input/output error")
    disk.let_go()
    assert await client.committed() == ErrorCode.NOT_COORDINATOR
    assert await other.committed() == ErrorCode.NOT_COORDINATOR
    client.commit(9)
    assert await client.committed() != ErrorCode.NONE
    other.fetch_offset()
    assert (await other.fetched_offset())[0] != ErrorCode.NONE


async def test_a_topic_that_goes_meanwhile_keeps_nobody_waiting(disk, connect):
    client, admin = await connect(), await connect()
    client.produce()
    await disk.a_sync()
    admin.send(ApiKey.DELETE_TOPICS, 4, topic_names=("t",), timeout_ms=1000)
    await admin.receive()
    disk.let_go()
    assert (await client.produced())[0] == ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_stop_answers_those_who_wait(disk, server, connect):
    client = await connect()
    client.produce()
    await disk.a_sync()
    stop = asyncio.ensure_future(server.broker.stop())
    disk.let_go()
    assert await client.produced() == (ErrorCode.NONE, 0)
    await stop
    server.broker.stop = lambda: asyncio.sleep(0)
