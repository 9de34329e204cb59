"""An observer of Apache Kafka's controllers, on the machine's clock and disk, and a client of the active one."""

import asyncio
from contextlib import asynccontextmanager, suppress
from random import Random
from uuid import uuid4

from odradek.client.api import Api, ClientError
from odradek.client.node_client import NodeClient, connect_to
from odradek.common.config import load
from odradek.controller.metadata.cluster_metadata import Publishers, PublishingOrder
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.metadata.snapshot_generator import SnapshotGenerator
from odradek.controller.quorum.fetch_messages import ObserverIdentity
from odradek.controller.quorum.leader_discovery import QuorumNode
from odradek.controller.quorum.observer import ObserverConfig, ObserverHost
from odradek.controller.quorum.start import open_observer
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types import (
    broker_heartbeat,
    broker_registration,
    create_topics,
    delete_topics,
    describe_quorum,
    incremental_alter_configs,
)
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log.log_config import LogConfig
from odradek.timing.background import InlineBackground
from odradek.timing.driver import AsyncioDriver
from odradek.timing.slices import Slices
from odradek.timing.system_clock import SystemClock
from odradek.timing.timer import Timer
from tests.campaigns.kafka_tools.kafka_controllers import KafkaControllers
from tests.controller.quorum.fake_quorum import Told

BROKER_ID = 7
METADATA_VERSION = 33
FEATURES = [
    ("metadata.version", 7, METADATA_VERSION),
    *(("group.version", 0, 1), ("transaction.version", 0, 2), ("share.version", 0, 2)),
    *(("streams.version", 0, 1), ("eligible.leader.replicas.version", 0, 1)),
]
TIMEOUT_S = 30.0


class Observed:
    """An observer that runs, with its image, and who it told."""

    def __init__(self, opened, image, told):
        self.log, self.follower, self.observer = opened
        self.image = image
        self.told = told
        self.task = asyncio.get_running_loop().create_task(self.observer.run())

    async def until(self, condition):
        """Wait until ``condition`` holds."""
        async with asyncio.timeout(TIMEOUT_S):
            while not condition():
                if self.task.done():
                    await self.task
                await asyncio.sleep(0.01)

    async def has_applied(self, offset):
        """Wait until what was committed below ``offset`` is in the image."""
        await self.until(lambda: self.follower.is_caught_up and self.log.applied_offset >= offset)

    @staticmethod
    def follow_up(request):
        """Let a request go on by itself, which is waited for later."""
        return asyncio.get_running_loop().create_task(request)

    @property
    def data(self):
        """The bytes of the copy."""
        return self.log._log.read(self.log.start_offset, 1 << 30, upper_offset=self.log.end_offset, min_one_batch=True).read()


class RealQuorum:
    """What a test does with ``controllers``: observe them, and ask the active one."""

    def __init__(self, controllers):
        self.controllers = controllers
        # The last response that was not accepted.
        self.refused = None
        self.timer = Timer(SystemClock())
        self._driver = AsyncioDriver(self.timer, asyncio.get_running_loop())
        self._clients = {
            node_id: NodeClient(connect_to("127.0.0.1", port), self.timer, Random(1))
            for node_id, port in controllers.ports.items()
        }

    def close(self):
        for client in self._clients.values():
            client.close()
        self._driver.close()
        self.timer.close()

    @asynccontextmanager
    async def observing(self, data_dir, *, directory_id=None, settings=None, are_voters_known=True, **config):
        """An observer on ``data_dir``. At the end nothing is closed, as after kill -9."""
        clock = self.timer.clock
        loop = asyncio.get_running_loop()
        image = MetadataImage()
        told = Told()
        publishers = Publishers()
        publishers.add(told, PublishingOrder.PARTITIONS)
        host = ObserverHost(
            file_system=RealFileSystem(),
            timer=self.timer,
            slices=Slices(clock.monotonic_ms, loop.call_soon),
            random=Random(1),
            connect=lambda address: connect_to(*address),
            warn=lambda event, **what: None,
        )
        broker_config = load("".join(f"{name}={value}\n" for name, value in (settings or {}).items()))
        opened = open_observer(
            host,
            ObserverIdentity(self.controllers.cluster_id, BROKER_ID, directory_id or uuid4()),
            [
                QuorumNode(node_id if are_voters_known else None, "127.0.0.1", port)
                for node_id, port in self.controllers.ports.items()
            ],
            data_dir=str(data_dir),
            image=image,
            publishers=publishers,
            make_snapshots=lambda log: SnapshotGenerator(log, image, broker_config, clock, InlineBackground()),
            config=ObserverConfig(voter_ids=tuple(self.controllers.ports) if are_voters_known else (), **config),
            log_config=LogConfig(),
        )
        observed = Observed(opened, image, told)
        try:
            yield observed
        finally:
            observed.task.cancel()
            with suppress(asyncio.CancelledError):
                await observed.task

    async def ask(self, node_id, key, request, timeout_ms=None):
        """The response of one controller."""
        return await self._clients[node_id].request(Api(key), request, timeout_ms)

    async def active(self):
        """(node id, what it tells of the quorum) of the active controller, when there is one."""
        request = describe_quorum.DescribeQuorumRequest(
            topics=[
                describe_quorum.RequestTopicData(
                    topic_name="__cluster_metadata", partitions=[describe_quorum.RequestPartitionData(0)]
                )
            ]
        )
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                for node_id in self.controllers.ports:
                    with suppress(ClientError):
                        response = await self.ask(node_id, ApiKey.DESCRIBE_QUORUM, request, 500)
                        [partition] = response.topics[0].partitions
                        if not partition.error_code and partition.leader_id == node_id and partition.high_watermark > 0:
                            return node_id, partition
                await asyncio.sleep(0.02)

    async def ask_active(self, key, request, is_accepted):
        """The response of the active controller that ``is_accepted``: a new one may refuse until it is ready."""
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                node_id, _ = await self.active()
                response = await self.ask(node_id, key, request)
                if is_accepted(response):
                    return response
                self.refused = response
                await asyncio.sleep(0.02)

    async def committed_offset(self):
        """The high watermark, behind all that was answered before."""
        _, partition = await self.active()
        return partition.high_watermark

    async def register(self, broker_id=BROKER_ID):
        """A broker, unfenced, which topics can be placed on; its epoch."""
        registration = broker_registration.BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=self.controllers.cluster_id,
            incarnation_id=uuid4(),
            listeners=[broker_registration.Listener(name="PLAINTEXT", host="127.0.0.1", port=1)],
            features=[broker_registration.Feature(*feature) for feature in FEATURES],
            log_dirs=[uuid4()],
        )
        registered = await self.ask_active(ApiKey.BROKER_REGISTRATION, registration, lambda each: not each.error_code)
        epoch = registered.broker_epoch
        heartbeat = broker_heartbeat.BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=epoch
        )
        await self.ask_active(ApiKey.BROKER_HEARTBEAT, heartbeat, lambda each: not each.error_code and not each.is_fenced)
        return epoch

    async def create_topics(self, names, assignments=(), partitions=1):
        """Topics of so many partitions, or of one for each of ``assignments``, which are broker ids."""
        placed = [create_topics.CreatableReplicaAssignment(index, ids) for index, ids in enumerate(assignments)]
        size = {"num_partitions": -1, "replication_factor": -1, "assignments": placed}
        if not placed:
            size = {"num_partitions": partitions, "replication_factor": 1}
        topics = [create_topics.CreatableTopic(name=name, **size) for name in names]
        request = create_topics.CreateTopicsRequest(topics=topics, timeout_ms=10_000)
        return await self.ask_active(
            ApiKey.CREATE_TOPICS, request, lambda each: not any(topic.error_code for topic in each.topics)
        )

    async def delete_topics(self, names):
        topics = [delete_topics.DeleteTopicState(name=name) for name in names]
        request = delete_topics.DeleteTopicsRequest(topics=topics, timeout_ms=10_000)
        await self.ask_active(ApiKey.DELETE_TOPICS, request, lambda each: not any(one.error_code for one in each.responses))

    def alter_config(self, resource_type, resource_name, name, value):
        """The request that sets a config, or removes it where ``value`` is None."""
        config = incremental_alter_configs.AlterableConfig(name=name, value=value, config_operation=int(value is None))
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=resource_type, resource_name=resource_name, configs=[config]
        )
        return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])

    async def set_config(self, *change):
        await self.ask_active(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            self.alter_config(*change),
            lambda each: not any(one.error_code for one in each.responses),
        )


@asynccontextmanager
async def quorum_of_kafka(directory, count, settings, **options):
    """A quorum of ``count`` of Kafka's controllers."""
    controllers = KafkaControllers(directory, count, settings, **options)
    try:
        controllers.start()
        quorum = RealQuorum(controllers)
        yield quorum
        quorum.close()
    finally:
        controllers.close()
