"""A broker in memory, asked by frames, and what its metrics say then."""

import asyncio
from random import Random

from odradek.broker.config import load
from odradek.broker.context import Reply, Session
from odradek.broker.metrics.definitions import Distribution, Sum
from odradek.broker.metrics.table import read_all
from odradek.broker.server import Broker
from odradek.coordinator.runtime.states import ShardState
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.records import Record, build_batch
from odradek.storage.memory_filesystem import MemoryFileSystem
from odradek.timing.background import InlineBackground
from odradek.timing.clock import VirtualClock
from tests.raw_client import decode_response, encode_request, fetch_fields, produce_fields

SESSION = Session("PLAINTEXT", ("127.0.0.1", 5))
SETTINGS = {
    "log.dirs": "/data",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}
# Of the event loop, more than anything here takes that does not wait for the clock.
_TURNS = 1000


class Bed:
    """A started broker under a virtual clock."""

    def __init__(self, **settings):
        self.clock = VirtualClock()
        overrides = SETTINGS | {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.broker = Broker(
            load(overrides=overrides),
            clock=self.clock,
            file_system=MemoryFileSystem(),
            random=Random(7),
            background=InlineBackground(),
        )

    def request(self, api_key, version, **fields):
        frame = encode_request(api_key, version, **fields)[4:]
        return self.broker.dispatcher.dispatch(frame, SESSION, self.clock.monotonic_ms())

    def send(self, api_key, version, **fields):
        """The answer's future."""
        chunks = self.request(api_key, version, **fields)

        async def answer():
            for _ in range(_TURNS):
                if not isinstance(chunks, Reply) or chunks.done:
                    break
                await asyncio.sleep(0)
                # What is due at once is due now: the clock moves by itself no more than that.
                self.clock.advance(0)
            told = chunks.response if isinstance(chunks, Reply) else chunks
            assert told is not None, f"{api_key.name} is not answered"
            return decode_response(api_key, version, b"".join(told)[4:])[1]

        return asyncio.ensure_future(answer())

    def produce(self, topic, *values, partition=0, acks=-1):
        records = build_batch([Record(value=value, timestamp=1_700_000_000_000) for value in values])
        self.request(ApiKey.PRODUCE, 9, **produce_fields(topic, records, partition=partition, acks=acks))
        return len(records)

    def fetch(self, topic, offset, **fields):
        self.request(ApiKey.FETCH, 12, **fetch_fields(topic, offset, **fields))

    def read(self):
        """{name: {label values: value}}."""
        return {metric.shown_name: dict(samples) for metric, samples in read_all(self.broker)}


async def loaded(runtime):
    """Have a coordinator's topic made, and all its shards loaded."""
    runtime.partition_for("any")
    while set(runtime.states().values()) != {ShardState.ACTIVE}:  # noqa: ASYNC110  each turn loads a slice
        await asyncio.sleep(0)


async def on_a_broker(scenario, **settings):
    """Run ``scenario(bed)``, which may be a coroutine function, between the broker's start and stop; what it returns."""
    bed = Bed(**settings)
    bed.broker.start()
    try:
        result = scenario(bed)
        return await result if asyncio.iscoroutine(result) else result
    finally:
        await bed.broker.stop()


def plain(value):
    """A reading's value, comparable."""
    match value:
        case Sum():
            return value.count, value.total
        case Distribution():
            return sum(value.counts), value.total
    return value
