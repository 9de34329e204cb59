"""A broker in memory, asked by frames, and what its metrics say then."""

import asyncio

from odradek.broker.metrics.definitions import Distribution, Sum
from odradek.broker.metrics.table import read_all
from odradek.common.context import Session
from odradek.coordinator.runtime.states import ShardState
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.records import Record, build_batch
from odradek.testing import SocketlessBroker
from odradek.timing.clock import VirtualClock
from tests.raw_client import decode_response, encode_request, fetch_fields, produce_fields

SESSION = Session("PLAINTEXT", ("127.0.0.1", 5))
SETTINGS = {"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3"}


class Bed:
    """A started broker under a virtual clock."""

    def __init__(self, **settings):
        self.clock = VirtualClock()
        configs = SETTINGS | {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.kit = SocketlessBroker(configs=configs, clock=self.clock, background="inline", seed=7)

    @property
    def broker(self):
        return self.kit.core

    def request(self, api_key, version, **fields):
        return self.kit.send_bytes(encode_request(api_key, version, **fields)[4:])

    def send(self, api_key, version, **fields):
        """The answer's future."""
        answer = self.request(api_key, version, **fields)

        async def decoded():
            return decode_response(api_key, version, await self.kit.wait(answer))[1]

        return asyncio.ensure_future(decoded())

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


def plain(value):
    """A reading's value, comparable."""
    match value:
        case Sum():
            return value.count, value.total
        case Distribution():
            return sum(value.counts), value.total
    return value
