"""The membership of a broker in a cluster: it follows the metadata, sends heartbeats, and replicates partitions.

    catch_up    register, and follow the metadata until the image is the cluster's
    serve       the logs are open: replicate from now on
    unfence     let the controller give this broker leaderships
    leave       let the controller move leaderships away (a controlled shutdown)
    close       stop following and fetching

Kafka's class is BrokerServer.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from odradek.broker.cluster.broker_clients import BrokerClients, PeerNetwork
from odradek.broker.cluster.followed_metadata import FollowedMetadata
from odradek.broker.cluster.leader_hints import LeaderHints
from odradek.broker.cluster.partition_ends import PartitionEnds
from odradek.broker.cluster.peers import TransactionPeers
from odradek.broker.cluster.share_peers import DeadLetterPeers, ShareStatePeers
from odradek.broker.replica.controller_requests import AlterPartitions, DirectoryAssignments
from odradek.broker.replica.replica_fetcher import FetcherConfig
from odradek.broker.replica.replica_fetchers import ReplicaFetchers
from odradek.broker.replica.replicated_roles import BrokersView, ReplicatedRoles
from odradek.broker.replica.replication_quota import ReplicationThrottles
from odradek.broker.security.tokens import is_refused_here
from odradek.common.config.dynamic import ResourceType
from odradek.common.config.listener_config import inter_broker_listener, security_protocol_id
from odradek.common.logging import log as broker_log
from odradek.controller.metadata.cluster_metadata import PublishingOrder
from odradek.controller.metadata.cluster_view import Cluster
from odradek.controller.metadata.features import SUPPORTED_FEATURES
from odradek.controller.quorum.broker_lifecycle import BrokerLifecycle, LifecycleConfig, Registration
from odradek.controller.quorum.forwarding import ForwardingGate, ProducerIdBlocks
from odradek.controller.quorum.leader_discovery import MembershipLost
from odradek.protocol.message_types.broker_registration import Listener
from odradek.storage.directories.checkpoints import HIGH_WATERMARK_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random
    from uuid import UUID

    from odradek.broker.cluster.followed_metadata import MetadataSource
    from odradek.broker.replica.partition import Partition
    from odradek.broker.replica.partition_directories import PartitionDirectories
    from odradek.broker.replica.partitions import Partitions
    from odradek.client.node_client import Connect
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.config.listener_config import Endpoint
    from odradek.controller.quorum.leader_discovery import Address
    from odradek.storage.directories.data_directory import DirectoryIdentity
    from odradek.storage.directories.log_manager import LogManager
    from odradek.timing.clock import Clock
    from odradek.timing.timer import Timer

# The longest controlled shutdown, as with Kafka's brokers.
_SHUTDOWN_S: Final = 300.0


class MemberHost(Protocol):
    """The process of the broker that is a member of the cluster."""

    config: BrokerConfig
    node_id: int
    clock: Clock
    timer: Timer
    random: Random
    call_soon: Callable[[Callable[[], None]], object]

    def new_uuid(self) -> UUID:
        """Return a random UUID, drawn with the broker's seed."""

    def fail(self, reason: str) -> None:
        """Report that the broker cannot go on."""


class ClusterMember:
    """The membership of one broker, from one start to the next stop. Loop thread only."""

    def __init__(
        self,
        broker: MemberHost,
        partitions: Partitions,
        endpoints: Mapping[str, Endpoint],
        log_manager: LogManager,
        identity: DirectoryIdentity,
        source: MetadataSource,
        connect: Callable[[Address], Connect],
    ) -> None:
        """``connect`` returns the connector to another broker's address."""
        self._connect = connect
        self._broker = broker
        self._partitions = partitions
        self._log_manager = log_manager
        self._tasks: list[asyncio.Task[None]] = []
        self._is_closed = False
        self.image = source.image
        self._source = source
        config = broker.config
        timer, random, node_id = broker.timer, broker.random, broker.node_id
        channel = source.link
        registration = _registration(broker, endpoints, log_manager, identity)
        self.lifecycle = BrokerLifecycle(
            registration, channel, lambda: source.applied_offset - 1, timer, random, _lifecycle_config(config)
        )
        self.directory_failed = self.lifecycle.directory_failed
        self._forwarding = ForwardingGate(channel, partial(is_refused_here, config))
        self.gates = (LeaderHints(self.image, Cluster(self.image, node_id)), self._forwarding)
        self._blocks = ProducerIdBlocks(channel, node_id, self._epoch)
        self._alter_partitions = AlterPartitions(channel, timer, node_id, self._epoch)
        self._assignments = DirectoryAssignments(channel, timer, node_id, self._epoch)
        self.metadata = FollowedMetadata(
            source,
            config=config,
            clock=broker.clock,
            forwarding=self._forwarding,
            request_block=self._blocks.request,
            assignments=self._assignments,
        )
        self._throttles = ReplicationThrottles(self.image, config, broker.clock, node_id)
        self._view = self._make_view()
        self._fetchers = self._make_fetchers()
        network = self._network(connect)
        self.peers = TransactionPeers(
            self.image,
            network,
            retry_backoff_ms=config["add.partitions.to.txn.retry.backoff.ms"],
            max_retry_ms=config["add.partitions.to.txn.retry.backoff.max.ms"],
        )
        self._share_clients = BrokerClients(network, partial(network.new_client, purpose="shares"))
        self.partition_ends = PartitionEnds(self.image, self._share_clients)
        self.share_peers = ShareStatePeers(self._share_clients)
        self.dead_letter_peers = DeadLetterPeers(self._share_clients)
        self.roles = ReplicatedRoles(
            self._view,
            self._fetchers,
            self._assignments,
            self._throttles,
            partitions,
            timer,
            held_high_watermark=self._held_high_watermark,
            min_in_sync=self._min_in_sync,
            call_soon=broker.call_soon,
        )

    def _network(self, connect: Callable[[Address], Connect]) -> PeerNetwork:
        broker = self._broker
        return PeerNetwork(
            connect,
            self._view.address_of,
            broker.call_soon,
            broker.timer,
            broker.random,
            broker.node_id,
            broker.config["request.timeout.ms"],
        )

    def _make_view(self) -> BrokersView:
        broker, config = self._broker, self._broker.config
        return BrokersView(
            self.image,
            node_id=broker.node_id,
            own_epoch=self._epoch,
            listener_name=inter_broker_listener(config),
            max_lag_ms=config["replica.lag.time.max.ms"],
            clock=broker.clock,
            alter_partitions=self._alter_partitions,
            leader_quota=self._throttles.leader,
        )

    def _make_fetchers(self) -> ReplicaFetchers:
        broker = self._broker
        return ReplicaFetchers(
            self._connect,
            broker.timer,
            broker.random,
            node_id=broker.node_id,
            broker_epoch=self._epoch,
            address_of=self._view.address_of,
            config=_fetcher_config(broker.config),
            request_timeout_ms=broker.config["replica.socket.timeout.ms"],
            count=lambda: int(broker.config["num.replica.fetchers"]),
            quota=self._throttles.follower,
        )

    async def catch_up(self) -> None:
        """Register, and follow the metadata until the controller considers this broker caught up.

        Raises MembershipLost.
        """
        loop = asyncio.get_running_loop()
        followed, accepted = loop.create_future(), loop.create_future()
        self.lifecycle.on_caught_up = partial(_settle, accepted)
        self._tasks = [loop.create_task(self._source.run(partial(_settle, followed))), loop.create_task(self.lifecycle.run())]
        await self._until(followed)
        await self._until(accepted)
        self._log_manager.broker_epoch = self._epoch()

    def serve(self, directories: PartitionDirectories) -> None:  # noqa: ARG002  a broker alone records them
        """Start replicating. All logs must be open, and partitions must have their roles."""
        self.metadata.subscribe(self.roles, PublishingOrder.PARTITIONS)
        self._log_manager.checkpoints.high_watermark_of = self._high_watermark_of
        self.metadata.prepare()
        self.roles.start()
        self._checkpoint_later()
        for task in self._tasks:
            task.add_done_callback(self._ended)

    async def unfence(self) -> None:
        """Ask to be unfenced, and wait for it. Raises MembershipLost."""
        unfenced = asyncio.get_running_loop().create_future()
        self.lifecycle.on_unfenced = partial(_settle, unfenced)
        self.lifecycle.ready_to_unfence()
        await self._until(unfenced)

    async def leave(self) -> None:
        """Have the controller move the leaderships away, if it can be reached."""
        self.lifecycle.begin_controlled_shutdown()
        if self._tasks and not (await asyncio.wait(self._tasks[1:], timeout=_SHUTDOWN_S))[0]:
            broker_log.warn("the controller did not move leaderships away in time: stopping anyway", waited_s=_SHUTDOWN_S)

    async def close(self) -> None:
        """Stop following, fetching and asking. ``metadata`` closes the copy of the metadata log."""
        self.abandon()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._fetchers.close()

    def abandon(self) -> None:
        """Stop at once, without waiting for work in progress."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        for part in (
            *(self.peers, self.partition_ends, self.share_peers, self.dead_letter_peers, self._share_clients),
            *(self._source.link, self._forwarding, self._blocks, self._alter_partitions, self._assignments),
        ):
            part.close()
        self._fetchers.end()

    def _epoch(self) -> int:
        return self.lifecycle.broker_epoch

    async def _until(self, future: asyncio.Future[None]) -> None:
        """Wait for ``future``. Raises the error of a task that ended, since the future will not complete then."""
        await asyncio.wait([future, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
        if not future.done():
            for task in self._tasks:
                if task.done():
                    await task
            raise MembershipLost("the broker was stopped before it had started")

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._is_closed:
            self._broker.fail(" ".join(str(error).split()) or type(error).__name__)

    def _min_in_sync(self, topic_name: str) -> int:
        overrides = self.image.configs(ResourceType.TOPIC, topic_name)
        found: int = self._broker.config.topic_config(overrides)["min.insync.replicas"]
        return found

    def _held_high_watermark(self, partition: Partition) -> int:
        its_log = partition.log
        if its_log is None:
            return 0
        home = self._log_manager.home_of(its_log)
        return home.held_offset(HIGH_WATERMARK_FILE, (partition.topic, partition.index)) or 0

    def _high_watermark_of(self, key: tuple[str, int]) -> int | None:
        partition = self._partitions.get(*key)
        return None if partition is None else partition.high_watermark

    def _checkpoint_later(self) -> None:
        interval_ms = self._broker.config["replica.high.watermark.checkpoint.interval.ms"]
        self._broker.timer.call_after(interval_ms, self._checkpoint)

    def _checkpoint(self) -> None:
        try:
            self._log_manager.checkpoints.write_high_watermarks()
        except OSError as error:
            broker_log.error("cannot write high watermarks", reason=str(error))
        self._checkpoint_later()


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _lifecycle_config(config: BrokerConfig) -> LifecycleConfig:
    return LifecycleConfig(
        heartbeat_interval_ms=config["broker.heartbeat.interval.ms"],
        session_timeout_ms=config["broker.session.timeout.ms"],
        initial_registration_timeout_ms=config["initial.broker.registration.timeout.ms"],
    )


def _fetcher_config(config: BrokerConfig) -> FetcherConfig:
    return FetcherConfig(
        min_bytes=config["replica.fetch.min.bytes"],
        wait_max_ms=config["replica.fetch.wait.max.ms"],
        max_bytes=config["replica.fetch.max.bytes"],
        response_max_bytes=config["replica.fetch.response.max.bytes"],
        backoff_ms=config["replica.fetch.backoff.ms"],
    )


def _registration(
    broker: MemberHost, endpoints: Mapping[str, Endpoint], log_manager: LogManager, identity: DirectoryIdentity
) -> Registration:
    return Registration(
        node_id=broker.node_id,
        cluster_id=identity.cluster_id,
        incarnation_id=broker.new_uuid(),
        listeners=[
            Listener(each.name, each.host, each.port, security_protocol_id(broker.config, each.name))
            for each in endpoints.values()
        ],
        features=[(name, *levels) for name, levels in SUPPORTED_FEATURES.items()],
        log_dirs=log_manager.directories.online_ids,
        rack=broker.config["broker.rack"],
        previous_broker_epoch=log_manager.previous_broker_epoch,
    )
