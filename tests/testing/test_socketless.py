"""A broker in process: it needs no socket, no thread and no wall clock, and goes as a killed one does."""

import asyncio
import errno
import os
import subprocess
import sys

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages
from odradek.protocol.records import Record, build_batch
from odradek.testing import SocketlessBroker, Unanswered
from odradek.timing.clock import VirtualClock
from tests.raw_client import decode_response, encode_request, fetch_fields, produce_fields

PRODUCE, FETCH, JOIN = 9, 12, 5
SMALL = {"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3"}
DURABLE = SMALL | {"log.flush.interval.messages": "1"}
BACKGROUNDS = ["threads", "inline", "seeded"]


class Client:
    """Frames to a broker, and their answers decoded."""

    def __init__(self, broker):
        self.broker = broker

    async def ask(self, api_key, version, within_ms=1000, **fields):
        response = await self.broker.ask_bytes(encode_request(api_key, version, **fields)[4:], within_ms=within_ms)
        return decode_response(api_key, version, response)[1]

    async def produce(self, value=b"v", **options):
        if "t" not in self.broker.core.controller.image.topics:
            asked = {"name": "t", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
            await self.ask(ApiKey.CREATE_TOPICS, 5, topics=[asked], timeout_ms=1000)
        batch = build_batch([Record(value=value, timestamp=1)])
        answer = await self.ask(ApiKey.PRODUCE, PRODUCE, **produce_fields("t", batch, **options))
        return answer.responses[0].partition_responses[0]

    async def records(self):
        answer = await self.ask(ApiKey.FETCH, FETCH, **fetch_fields("t", 0))
        return answer.responses[0].partitions[0].records or b""


def join(group="g"):
    m = messages(ApiKey.JOIN_GROUP)
    return m.JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="consumer",
        protocols=[m.JoinGroupRequestProtocol(name="range", metadata=b"m")],
    )


async def live(broker):
    """Something of everything: records, a group, its offsets, a transaction's producer."""
    client = Client(broker)
    for number in range(20):
        assert (await client.produce(b"value %d" % number)).error_code == 0
    joined = await broker.ask(ApiKey.JOIN_GROUP, join(), 3, within_ms=10_000)
    assert joined.error_code == 0
    offsets = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 3}]}]
    committed = await client.ask(ApiKey.OFFSET_COMMIT, 8, group_id="other", topics=offsets)
    assert committed.topics[0].partitions[0].error_code == 0
    await client.ask(ApiKey.INIT_PRODUCER_ID, 4, transactional_id="tx", transaction_timeout_ms=1000)
    await broker.settle()


@pytest.mark.parametrize("background", BACKGROUNDS)
async def test_a_message_is_answered_by_a_message_and_a_frame_by_a_frame(background):
    async with SocketlessBroker(configs=SMALL, clock=VirtualClock(), background=background) as broker:
        await live(broker)
        request = messages(ApiKey.API_VERSIONS).request(client_software_name="t", client_software_version="1")
        by_message = await broker.ask(ApiKey.API_VERSIONS, request, 3)
        by_frame = await Client(broker).ask(ApiKey.API_VERSIONS, 3, client_software_name="t", client_software_version="1")
        assert len(by_message.api_keys) == len(by_frame.api_keys) > 40


def test_without_a_loop_each_call_runs_the_brokers_own():
    with SocketlessBroker(configs=SMALL, clock=VirtualClock(), seed=1) as broker:
        frame = encode_request(ApiKey.API_VERSIONS, 2)[4:]
        assert decode_response(ApiKey.API_VERSIONS, 2, broker.ask_bytes(frame))[1].api_keys
        assert broker.ask(ApiKey.JOIN_GROUP, join(), 3, within_ms=10_000).error_code == 0


async def test_a_frame_that_makes_no_sense_is_what_closes_a_connection():
    async with SocketlessBroker(clock=VirtualClock()) as broker:
        with pytest.raises(ConnectionAbortedError):
            await broker.ask_bytes(b"\x7f\xff" + bytes(20))


async def test_a_request_that_waits_for_time_is_answered_when_time_has_passed():
    clock = VirtualClock()
    async with SocketlessBroker(configs=SMALL | {"group.initial.rebalance.delay.ms": "3000"}, clock=clock) as broker:
        await broker.ask(ApiKey.JOIN_GROUP, join(), 3, within_ms=10_000)
        await broker.advance(60_000)
        began_ms = clock.now_ms()
        with pytest.raises(Unanswered):
            await broker.ask(ApiKey.JOIN_GROUP, join("never"), 3)
        assert clock.now_ms() == began_ms
        answer = broker.send(ApiKey.JOIN_GROUP, join("later"), 3)
        await broker.advance(2999)
        assert not answer.done
        await broker.advance(1)
        assert (await asyncio.wait_for(answer, 10)).error_code == 0


@pytest.mark.parametrize("background", BACKGROUNDS)
async def test_a_stop_returns_while_the_clock_stands_still_and_answers_who_waits(background):
    broker = SocketlessBroker(configs=SMALL, clock=VirtualClock(), background=background)
    await broker.start()
    await live(broker)
    waiting = broker.send(ApiKey.JOIN_GROUP, join(), 3)
    fetching = broker.send_bytes(encode_request(ApiKey.FETCH, FETCH, **fetch_fields("t", 20, max_wait_ms=60_000))[4:])
    assert not waiting.done
    assert not fetching.done
    await asyncio.wait_for(broker.stop(), 20)
    assert waiting.response.error_code
    assert fetching.done


async def test_a_killed_broker_answers_nobody_and_its_disk_has_all_that_was_written():
    broker = SocketlessBroker(configs=SMALL, clock=VirtualClock(), seed=1)
    await broker.start()
    await live(broker)
    waiting = broker.send(ApiKey.JOIN_GROUP, join(), 3)
    broker.kill()
    with pytest.raises(ConnectionResetError):
        await waiting
    await broker.start()
    assert b"value 19" in await Client(broker).records()
    await broker.stop()


@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize("keep_some", [False, True])
async def test_what_was_acknowledged_after_a_flush_outlives_a_loss_of_power(background, keep_some):
    broker = SocketlessBroker(configs=DURABLE, clock=VirtualClock(), background=background, seed=5)
    await broker.start()
    client = Client(broker)
    for number in range(10):
        assert (await client.produce(b"value %d" % number)).error_code == 0
        broker.lose_power(keep_some=keep_some)
        await broker.start()
    records = await client.records()
    assert [number for number in range(10) if b"value %d" % number not in records] == []
    await broker.stop()


async def test_what_was_not_flushed_is_gone_with_the_power_and_the_broker_goes_on():
    broker = SocketlessBroker(configs=SMALL, clock=VirtualClock(), seed=5)
    await broker.start()
    client = Client(broker)
    await client.produce(b"lost")
    broker.lose_power()
    await broker.start()
    assert b"lost" not in await client.records()
    assert (await client.produce(b"new")).base_offset == 0
    await broker.stop()


async def test_a_directory_is_opened_again_after_a_kill_and_after_a_stop(tmp_path):
    broker = SocketlessBroker(tmp_path / "data", configs=SMALL, clock=VirtualClock(), background="threads")
    client = Client(broker)
    for number, end in enumerate([broker.kill, broker.stop, broker.kill]):
        await broker.start()
        assert (await client.produce(b"value %d" % number)).base_offset == number
        ended = end()
        if ended is not None:
            await ended
    async with broker:
        records = await client.records()
    assert all(b"value %d" % number in records for number in range(3))


async def test_callbacks_of_a_killed_broker_do_not_touch_its_successors_files():
    broker = SocketlessBroker(configs=SMALL, clock=VirtualClock(), seed=2)
    await broker.start()
    await live(broker)
    offsets = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 9}]}]
    # Decided, and appended in the loop's next turn, which comes too late.
    broker.send_bytes(encode_request(ApiKey.OFFSET_COMMIT, 8, group_id="other", topics=offsets)[4:])
    broker.kill()
    before = broker.disk.contents()
    for _ in range(50):
        await asyncio.sleep(0)
    assert broker.disk.contents() == before


async def test_each_broker_has_its_own_lines_also_of_what_its_timer_does():
    clock = VirtualClock()
    first, second = (SocketlessBroker(configs=SMALL, clock=clock) for _ in range(2))
    async with first, second:
        await Client(first).produce()
        # The broker fails by a timer, when time passes for both.
        first.core.partitions.get("t", 0).log.storage_error(OSError(errno.EIO, "Input/output error"))
        clock.advance(1000)
    assert "broker failed" in [line.event for line in first.lines]
    assert not second.lines


def run_seeded(seed, background):
    """The digest of all files after a life, in a process with hashes of its own."""
    program = f"""
import asyncio
from hashlib import sha256
from odradek.testing import SocketlessBroker
from odradek.timing.clock import VirtualClock
from tests.testing.test_socketless import SMALL, live

async def main():
    broker = SocketlessBroker(configs=SMALL, clock=VirtualClock(), background={background!r}, seed={seed})
    await broker.start()
    await live(broker)
    await broker.advance(100_000)
    await broker.stop()
    print(sha256(repr(broker.disk.contents()).encode()).hexdigest())

asyncio.run(main())
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment).stdout


@pytest.mark.parametrize("background", ["inline", "seeded"])
def test_the_same_seed_leaves_the_same_bytes_and_another_one_others(background):
    assert run_seeded(1, background) == run_seeded(1, background) != run_seeded(2, background)
