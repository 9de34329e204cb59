"""Producers: idempotent ones that wait for all in-sync replicas, and careless ones that wait for the leader alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.client.api import Api
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.init_producer_id import InitProducerIdRequest
from odradek.protocol.produce_request import ProduceRequest
from odradek.protocol.records import Record, build_batch
from tests.campaigns.cluster_simulation.client import Client
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from tests.campaigns.cluster_simulation.witness import Place
    from tests.campaigns.cluster_simulation.world import World

# Topics have names in it, and partitions are added to transactions by AddPartitionsToTxn.
PRODUCE_NAMED: Api[Any, Any] = Api(ApiKey.PRODUCE, 9, 11)
# Partitions are added as they are written to.
PRODUCE_ADDING: Api[Any, Any] = Api(ApiKey.PRODUCE, 12, 12)
INIT_PRODUCER_ID: Api[Any, Any] = Api(ApiKey.INIT_PRODUCER_ID, 4, 5)
IN_ORDER = "who sends in order is taken in order"
_LINGER_MS = 1_500
# What says nothing but that it should be tried again, perhaps elsewhere.
RETRIABLE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)
NO_ANSWER = "none"


class Batcher(Client):
    """Makes batches, and takes what is answered to them."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.producer_id = -1
        self.epoch = -1
        self.sequences: dict[Place, int] = {}
        self._made = 0

    def new_values(self) -> list[bytes]:
        """Some that nobody else has."""
        made = []
        for _ in range(self.rng.choice((1, 1, 1, 2, 5))):
            self._made += 1
            made.append(b"%s-%04d" % (self.name.encode(), self._made))
        return made

    def batch(self, place: Place, values: list[bytes], *, transactional: bool = False) -> bytes:
        """The values as they go to ``place`` next."""
        now_ms = 1_700_000_000_000 + int(self.world.loop.now_ms)
        return build_batch(
            [Record(timestamp=now_ms, value=value) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequences.get(place, 0) if self.producer_id >= 0 else -1,
            transactional=transactional,
        )

    def were_taken(self, place: Place, values: list[bytes]) -> None:
        """The next batch has later sequence numbers."""
        self.sequences[place] = self.sequences.get(place, 0) + len(values)

    async def produce(
        self,
        place: Place,
        batch: bytes,
        *,
        acks: int = -1,
        api: Api[Any, Any] = PRODUCE_NAMED,
        transactional_id: str | None = None,
    ) -> tuple[int | str, int]:
        """An error code and the base offset, NO_ANSWER where there is none."""
        request = ProduceRequest(transactional_id, acks, _LINGER_MS, [(place[0], [(place[1], batch)])])
        response = await self.ask(await self.leader(place), api, request)
        if response is None:
            return NO_ANSWER, -1
        [topic] = response.responses
        [partition] = topic.partition_responses
        self.world.counts[f"PRODUCE {ErrorCode(partition.error_code).name}"] += 1
        return partition.error_code, partition.base_offset


class IdempotentProducer(Batcher):
    """One batch at a time, until it is acknowledged."""

    async def work(self) -> None:
        """Produce as long as the world is in trouble, and a little beyond."""
        await self.initialise()
        while self.world.wants_more(self):
            place = self.rng.choice(self.world.places)
            values = self.new_values()
            self.world.ledger.sent[self.name, place] += values
            await self.deliver(place, values)
            await self.sleep(self.rng.random() * self.world.plan.think_ms)

    async def initialise(self) -> None:
        """Get a producer id."""
        while True:
            response = await self.ask_any(INIT_PRODUCER_ID, InitProducerIdRequest(transaction_timeout_ms=60_000))
            if response is not None and not response.error_code:
                break
            await self.sleep(50)
        self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        self.world.ledger.given(self.producer_id, self.epoch, self.name)

    async def deliver(self, place: Place, values: list[bytes]) -> None:
        """Send until it is acknowledged. Raises Violation."""
        batch = self.batch(place, values)
        while True:
            code, offset = await self.produce(place, batch)
            if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self.world.note("%s: %s at %s %s", self.name, values[0], place, offset)
                self.world.counts["records acknowledged"] += len(values)
                self.world.ledger.acknowledge(place, offset if code == ErrorCode.NONE else -1, values)
                self.were_taken(place, values)
                return
            if code != NO_ANSWER and code not in RETRIABLE:
                raise Violation(IN_ORDER, f"{self.name}: {place}: {values} is answered {ErrorCode(int(code)).name}")
            await self.look_again(place)


class CarelessProducer(Batcher):
    """Waits for the leader alone, and sends nothing again: what it wrote may be lost."""

    async def work(self) -> None:
        """Produce as long as the world is in trouble."""
        while self.world.is_in_trouble:
            place = self.rng.choice(self.world.places)
            values = self.new_values()
            self.world.ledger.careless.update(values)
            code, _ = await self.produce(place, self.batch(place, values), acks=1)
            if code != ErrorCode.NONE:
                await self.look_again(place)
            await self.sleep(self.rng.random() * self.world.plan.think_ms)
