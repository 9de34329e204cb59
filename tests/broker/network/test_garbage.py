"""Requests leave nothing to the garbage collector: what refers to itself lives until it is looked for, and that takes time."""

import asyncio
import gc
from collections import Counter

import pytest

from odradek.broker.start.broker_server import BrokerServer
from odradek.broker.start.shared_server import SharedServer
from odradek.common.config import load
from odradek.common.context import Reply, Session
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.records import Record, build_batch
from tests.raw_client import decode_response, encode_request, produce_fields

ROUNDS = 20
SESSION = Session("PLAINTEXT", ("127.0.0.1", 1))


class Caller:
    """Hands requests to a broker as a connection does."""

    def __init__(self, server):
        self.server = server
        self.broker = server.broker

    async def ask(self, api_key, version, **fields):
        frame = encode_request(api_key, version, **fields)[4:]
        answer = self.broker.dispatcher.dispatch(frame, SESSION, 0.0)
        while isinstance(answer, Reply):
            await asyncio.sleep(0)
            answer = answer.response if answer.done else answer
        return decode_response(api_key, version, b"".join(answer)[4:])[1]


async def transaction(caller, number, state):
    """Of two partitions and an offset, by a client that adds partitions as it writes to them (KIP-890)."""
    if not state:
        found = await caller.ask(ApiKey.INIT_PRODUCER_ID, 4, transactional_id="tx", transaction_timeout_ms=60_000)
        state.update(producer_id=found.producer_id, producer_epoch=found.producer_epoch)
    batch = build_batch([Record(value=b"v")], base_sequence=0, transactional=True, **state)
    produce = produce_fields("t", batch)
    produce["topic_data"][0]["partition_data"] = [{"index": index, "records": batch} for index in range(2)]
    answer = await caller.ask(ApiKey.PRODUCE, 12, transactional_id="tx", **produce)
    assert [each.error_code for each in answer.responses[0].partition_responses] == [0, 0]
    offsets = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": number}]}]
    answer = await caller.ask(ApiKey.TXN_OFFSET_COMMIT, 5, transactional_id="tx", group_id="g", topics=offsets, **state)
    assert answer.topics[0].partitions[0].error_code == 0
    ended = await caller.ask(ApiKey.END_TXN, 5, transactional_id="tx", committed=True, **state)
    assert ended.error_code == 0
    state.update(producer_id=ended.producer_id, producer_epoch=ended.producer_epoch)


async def generation(caller, number, _state):
    """Of a group of one, which joins, syncs, heartbeats, commits and leaves."""
    asked = {"group_id": f"group-{number}", "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b"m"}]}
    asked |= {"session_timeout_ms": 45_000, "rebalance_timeout_ms": 60_000}
    member_id = (await caller.ask(ApiKey.JOIN_GROUP, 9, member_id="", **asked)).member_id
    joined = await caller.ask(ApiKey.JOIN_GROUP, 9, member_id=member_id, **asked)
    assert joined.error_code == 0
    member = {"group_id": asked["group_id"], "generation_id": joined.generation_id, "member_id": member_id}
    given = [{"member_id": member_id, "assignment": b"a"}]
    synced = await caller.ask(ApiKey.SYNC_GROUP, 5, protocol_type="consumer", protocol_name="range", assignments=given, **member)
    assert synced.assignment == b"a"
    assert (await caller.ask(ApiKey.HEARTBEAT, 4, **member)).error_code == 0
    offsets = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": number}]}]
    member["generation_id_or_member_epoch"] = member.pop("generation_id")
    committed = await caller.ask(ApiKey.OFFSET_COMMIT, 9, topics=offsets, **member)
    assert committed.topics[0].partitions[0].error_code == 0
    left = await caller.ask(ApiKey.LEAVE_GROUP, 5, group_id=asked["group_id"], members=[{"member_id": member_id}])
    assert left.error_code == 0


async def connection(caller, _number, _state):
    """Of a client that asks once and leaves."""
    reader, writer = await asyncio.open_connection(*caller.server.bound_address)
    writer.write(encode_request(ApiKey.API_VERSIONS, 2))
    await reader.readexactly(4)
    writer.close()
    await writer.wait_closed()
    while len(caller.broker.connections):  # noqa: ASYNC110 - nobody tells when the broker has noticed
        await asyncio.sleep(0)


@pytest.mark.parametrize("life", [transaction, generation, connection])
async def test_no_request_leaves_anything_to_the_garbage_collector(tmp_path, life):
    async def live(first):
        for number in range(first, first + ROUNDS):
            await life(caller, number, state)

    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path), "num.partitions": "2"}
    server = await BrokerServer.start(SharedServer(load(overrides=settings)))
    try:
        server.broker.controller.auto_create(["t"])
        caller, state = Caller(server), {}
        await live(0)
        gc.collect()
        # What there is already is other tests', and may become garbage meanwhile.
        gc.freeze()
        gc.disable()
        await live(ROUNDS)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        assert not Counter(type(found).__name__ for found in gc.garbage if type(found).__module__.startswith("odradek"))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
        await server.stop()
