"""A client of the cluster: its connections, and what it knows of leaders and coordinators. It speaks the protocol as any client.

A request has an answer, or none: the connection is lost, or its time is over. Who asked decides what to do.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

from odradek.client.api import Api, ConnectFailed, Disconnected, RequestTimedOut
from odradek.client.node_client import ClientConfig, NodeClient, connect_to
from odradek.common.logging import _sink
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.find_coordinator import FindCoordinatorRequest
from odradek.protocol.message_types.metadata import MetadataRequest, MetadataRequestTopic
from odradek.timing.timer import Timer
from tests.campaigns.cluster_simulation.loop import Process, ProcessClock

if TYPE_CHECKING:
    from tests.campaigns.cluster_simulation.world import World

REQUEST_MS = 2_000
_BACKOFF_MS = 60
_PORT = 9092
GROUP, TRANSACTION = 0, 1
_METADATA: Api[Any, Any] = Api(ApiKey.METADATA, 9)
_FIND_COORDINATOR: Api[Any, Any] = Api(ApiKey.FIND_COORDINATOR, 4)
Place = tuple[str, int]


class Client:
    """``work`` is what it does. It may be killed, and paused."""

    # Whether it asks a leader that a broker which is behind has told of.
    believes_anybody = False

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.process = Process(world.loop, name, name)
        self.process.run(_sink.set, lambda *_: None)
        self.rng = Random(world.rng.getrandbits(64))
        self._clock = ProcessClock(world.loop, 1_700_000_000_000)
        self._timer: Timer = self.process.run(Timer, self._clock)
        self._nodes: dict[int, NodeClient] = {}
        # The leader, and the newest epoch that was heard of. Whoever tells of an older one is not believed (KIP-320).
        self._leaders: dict[Place, int] = {}
        self.leader_epochs: dict[Place, int] = {}
        self._coordinators: dict[tuple[str, int], int] = {}

    def begin(self, work: Any) -> None:
        """Do ``work`` until its end."""
        self.process.spawn(self._guard(work))

    async def _guard(self, work: Any) -> None:
        try:
            await work
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
            if not self.process.is_dead:
                self.world.complain(error)

    def kill(self) -> None:
        """End it without a word."""
        self.process.is_dead = True
        self.world.network.end(self.process, is_told=True)
        for node in self._nodes.values():
            self.process.run(node.close)
        self.process.cancel_tasks()
        self._timer.close()
        self.process.resume()

    def pause(self) -> None:
        """Freeze it."""
        self.process.pause()

    def resume(self) -> None:
        """Let it go on."""
        self.process.resume()
        self.world.network.resume(self.process)

    async def sleep(self, duration_ms: float) -> None:
        """Wait."""
        await asyncio.sleep(duration_ms / 1000)

    async def ask(self, node_id: int, api: Api[Any, Any], request: Any, timeout_ms: int = REQUEST_MS) -> Any:
        """The node's response, None where there is none."""
        node = self._nodes.get(node_id)
        if node is None:
            config = ClientConfig(client_id=self.name, connection_setup_timeout_ms=1_000, reconnect_backoff_max_ms=200)
            connect = connect_to(self.world.host_of(node_id), _PORT)
            node = self._nodes[node_id] = NodeClient(connect, self._timer, self.rng, config)
        self.world.counts[f"asked {api.key.name}"] += 1
        try:
            return await node.request(api, request, timeout_ms)
        except (ConnectFailed, Disconnected, RequestTimedOut):
            self.world.counts["requests without an answer"] += 1
            return None

    async def ask_any(self, api: Api[Any, Any], request: Any) -> Any:
        """Any broker's response, None where the one that was asked has not answered."""
        return await self.ask(self.rng.choice(self.world.broker_ids), api, request)

    # -------------------------------------------------------------------------------------------------- leaders, coordinators

    async def leader(self, place: Place) -> int:
        """Who leads, as far as somebody knows."""
        while (found := self._leaders.get(place)) is None:
            response = await self.ask_any(_METADATA, _metadata_of(place[0]))
            for topic in () if response is None else response.topics:
                for partition in topic.partitions:
                    self._note_leader((topic.name, partition.partition_index), partition.leader_id, partition.leader_epoch)
            if place not in self._leaders:
                await self.sleep(_BACKOFF_MS)
        return found

    def _note_leader(self, place: Place, leader_id: int, leader_epoch: int) -> None:
        if leader_id >= 0 and (self.believes_anybody or leader_epoch >= self.leader_epochs.get(place, -1)):
            self._leaders[place] = leader_id
            self.leader_epochs[place] = max(leader_epoch, self.leader_epochs.get(place, -1))

    def forget_leader(self, place: Place) -> None:
        """Ask who leads the next time."""
        self._leaders.pop(place, None)

    async def look_again(self, place: Place, backoff_ms: float = _BACKOFF_MS) -> None:
        """The leader is another by now, perhaps."""
        self._leaders.pop(place, None)
        await self.sleep(backoff_ms * self.rng.uniform(0.2, 1.5))

    async def coordinator(self, key: str, kind: int) -> int:
        """Who coordinates a group or transactional id."""
        while (found := self._coordinators.get((key, kind))) is None:
            response = await self.ask_any(_FIND_COORDINATOR, FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]))
            for each in () if response is None else response.coordinators:
                if each.error_code == ErrorCode.NONE:
                    self._coordinators[each.key, kind] = each.node_id
            if (key, kind) not in self._coordinators:
                await self.sleep(_BACKOFF_MS)
        return found

    async def ask_coordinator(self, key: str, kind: int, api: Api[Any, Any], request: Any) -> Any:
        """The response of the coordinator, None where there is none."""
        return await self.ask(await self.coordinator(key, kind), api, request)

    async def look_for_coordinator(self, key: str, kind: int) -> None:
        """It is another by now, perhaps."""
        self._coordinators.pop((key, kind), None)
        await self.sleep(_BACKOFF_MS * self.rng.uniform(0.2, 1.5))


def _metadata_of(topic: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
