"""Histories of clusters, each from its seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.client.api import Api
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.create_topics import CreatableTopic, CreateTopicsRequest
from tests.campaigns.cluster_simulation.client import Client
from tests.campaigns.cluster_simulation.ending import end
from tests.campaigns.cluster_simulation.faults import Faults
from tests.campaigns.cluster_simulation.world import World
from tests.campaigns.simulation import runner
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

_START_MS = 30_000
_CREATE_TOPICS: Api[Any, Any] = Api(ApiKey.CREATE_TOPICS)


def run(seed: int, *, show: Callable[[str], None] | None = None) -> tuple[World, Exception | None]:
    """The history of ``seed``, and what it ended with before its time."""
    world = World(seed, show=show)
    try:
        _live(world)
    except Exception as error:  # noqa: BLE001  whatever it is, it is the seed's
        return world, error
    finally:
        world.close()
    return world, None


def _live(world: World) -> None:
    world.controller.start()
    for machine in world.brokers:
        machine.start()
    if not world.run(_START_MS, lambda: all(machine.is_serving for machine in world.machines)):
        raise Violation("a cluster starts", "not in time")
    _create_topic(world)
    world.begin_clients()
    faults = Faults(world)
    world.later(world.rng.uniform(0, 1_000), faults.begin)
    world.run(world.plan.duration_ms)
    end(world, faults)


def _create_topic(world: World) -> None:
    client = Client(world, "creator")

    async def create() -> None:
        topic = CreatableTopic(name=world.topic, num_partitions=world.plan.partition_count, replication_factor=3)
        while True:
            response = await client.ask_any(_CREATE_TOPICS, CreateTopicsRequest(topics=[topic], timeout_ms=2_000))
            if response is not None and response.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                return
            await client.sleep(100)

    client.begin(create())
    if not world.run(_START_MS, lambda: not client.process.tasks):
        raise Violation("a cluster starts", "no topic can be created")


SIMULATION = runner.Simulation(
    "tests.campaigns.cluster_simulation",
    run,
    {
        "records acknowledged": ["records acknowledged"],
        "transactions committed": ["transactions committed"],
        "transactions aborted": ["transactions aborted", "transactions broken"],
        "offsets committed": ["offsets committed"],
        "offsets of transactions refused by brokers that do not coordinate their group": ["offsets refused elsewhere"],
        "transactions refused for too few replicas": ["races: few, COORDINATOR_NOT_AVAILABLE"],
        "brokers killed": ["kill a broker"],
        "powers lost": ["lose a broker's power"],
        "brokers stopped in good order": ["stopped in good order"],
        "brokers paused": ["pause a broker"],
        "controllers killed": ["kill the controller"],
        "powers of controllers lost": ["lose the controller's power"],
        "partitions of the network": [
            "isolate a broker",
            "cut two brokers off from each other",
            "cut a broker off from the controller",
            "let a broker hear nothing",
            "let nobody hear a broker",
        ],
        "logs cut off": ["log: truncating a follower that diverges from its leader"],
        "requests without an answer": ["requests without an answer"],
    },
)
