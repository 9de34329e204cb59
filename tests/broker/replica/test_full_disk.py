"""A full disk: what makes room works on the reserve, and a stop and a start do."""

import errno

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.records import Record, build_batch
from odradek.storage.directories.data_directory import RESERVE_FILE
from odradek.testing import SocketlessBroker
from odradek.testing.disk import DiskHandle, MemoryDisk
from odradek.timing.clock import VirtualClock
from tests.raw_client import decode_response, encode_request, produce_fields

NONE, KAFKA_STORAGE_ERROR = 0, 56
DISK_BYTES, RESERVE_BYTES = 400_000, 20_000
CONFIGS = {"log.segment.bytes": str(1 << 20), "log.initial.task.delay.ms": "1"}


class SmallHandle(DiskHandle):
    def __init__(self, disk, handle):
        super().__init__(handle._file)
        self._disk = disk

    def append(self, buffers):
        self._disk.ensure_room(sum(map(len, buffers)))
        super().append(buffers)


class SmallDisk(MemoryDisk):
    """A disk of ``size_bytes`` for all files together."""

    reserve_bytes = RESERVE_BYTES

    def __init__(self, size_bytes=DISK_BYTES):
        super().__init__()
        self.size_bytes = size_bytes

    @property
    def free_bytes(self):
        return self.size_bytes - sum(map(len, self.contents().values()))

    def ensure_room(self, size_bytes):
        if size_bytes > self.free_bytes:
            raise OSError(errno.ENOSPC, "No space left on device", "/data")

    def open(self, path, *, create=False):
        return SmallHandle(self, super().open(path, create=create))

    def write_atomic(self, path, data, *, durable=True):
        self.ensure_room(len(data))
        super().write_atomic(path, data, durable=durable)


class FullBroker:
    """A broker whose disk is filled to the last byte with records of the topics "old" and "new"."""

    def __init__(self):
        self.disk = SmallDisk()
        self.broker = SocketlessBroker(file_system=self.disk, configs=CONFIGS, clock=VirtualClock(), background="inline")

    async def ask(self, api_key, version, **fields):
        frame = encode_request(api_key, version, **fields)[4:]
        return decode_response(api_key, version, await self.broker.ask_bytes(frame, within_ms=1000))[1]

    async def create(self, name, **configs):
        settings = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
        asked = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": settings}
        (topic,) = (await self.ask(ApiKey.CREATE_TOPICS, 5, topics=[asked], timeout_ms=1000)).topics
        return topic.error_code

    async def produce(self, topic, size_bytes=1):
        batch = build_batch([Record(value=bytes(size_bytes), timestamp=1)])
        answer = await self.ask(ApiKey.PRODUCE, 9, **produce_fields(topic, batch))
        return answer.responses[0].partition_responses[0].error_code

    async def fill(self):
        for size_bytes in (5000, 1):
            while await self.produce("old", size_bytes) == NONE:
                pass

    async def delete_records(self, offset):
        asked = {"name": "old", "partitions": [{"partition_index": 0, "offset": offset}]}
        (topic,) = (await self.ask(ApiKey.DELETE_RECORDS, 2, topics=[asked], timeout_ms=1000)).topics
        return topic.partitions[0]


@pytest.fixture
async def full():
    found = FullBroker()
    async with found.broker:
        assert await found.create("new") == NONE
        assert await found.create("old", internal_segment_bytes="40000") == NONE
        await found.fill()
        yield found


async def test_deleted_records_give_their_room_back_at_once(full):
    deleted = await full.delete_records(50)
    assert (deleted.error_code, deleted.low_watermark) == (NONE, 50)
    await full.broker.advance(1)
    assert full.disk.free_bytes > 150_000
    assert await full.produce("new", 5000) == NONE


async def test_a_deleted_topic_gives_its_room_back_at_once(full):
    (deleted,) = (await full.ask(ApiKey.DELETE_TOPICS, 6, topics=[{"name": "old"}], timeout_ms=1000)).responses
    assert deleted.error_code == NONE
    await full.broker.advance(1)
    assert full.disk.free_bytes > 300_000


async def test_producers_and_new_topics_do_not_get_the_reserve(full):
    assert await full.create("newer") == KAFKA_STORAGE_ERROR
    assert await full.produce("new", 100) == KAFKA_STORAGE_ERROR
    assert len(full.disk.contents()[f"/data/{RESERVE_FILE}"]) == RESERVE_BYTES


async def test_a_full_disk_is_an_error_in_the_log(full):
    await full.create("newer")
    told = {line.event: line for line in full.broker.lines if "No space left on device" in str(line.fields.get("reason"))}
    assert {event: line.level for event, line in told.items()} == {
        "a produce was refused": "error",
        "a change of the metadata failed": "error",
    }


async def test_the_reserve_is_made_again_when_there_is_room(full):
    await full.delete_records(50)
    await full.broker.advance(120_000)
    assert len(full.disk.contents()[f"/data/{RESERVE_FILE}"]) == RESERVE_BYTES


async def test_a_broker_stops_cleanly_and_starts_on_a_full_disk(full):
    await full.broker.stop()
    assert "/data/.kafka_cleanshutdown" in full.disk.contents()
    full.disk.size_bytes -= full.disk.free_bytes
    await full.broker.start()
    (deleted,) = (await full.ask(ApiKey.DELETE_TOPICS, 6, topics=[{"name": "old"}], timeout_ms=1000)).responses
    assert deleted.error_code == NONE


async def test_deleted_records_whose_start_cannot_be_written_are_refused_and_still_give_room(full):
    full.disk.remove(f"/data/{RESERVE_FILE}")
    full.disk.size_bytes -= full.disk.free_bytes
    assert (await full.delete_records(50)).error_code == KAFKA_STORAGE_ERROR
    await full.broker.advance(1)
    assert full.disk.free_bytes > 150_000


async def test_a_stop_without_any_room_is_a_line_in_the_log(full):
    full.disk.remove(f"/data/{RESERVE_FILE}")
    full.disk.size_bytes -= full.disk.free_bytes
    await full.broker.stop()
    assert "unclean stop: the next start recovers logs" in {line.event for line in full.broker.lines}
    assert [line for line in full.broker.lines if line.fields.get("exc_info")] == []
    await full.broker.start()
