"""The broker without its listeners: assembles, opens and closes all parts. ``broker_server`` adds the listeners.

``open`` locks the data directories, reads the metadata log and opens every partition's log. After an unclean stop, logs are
recovered. ``serve`` loads the coordinators and resumes moves. From then on ``dispatcher`` answers requests from any source.
``stop`` answers the waiting requests, flushes, writes the checkpoints and the clean-shutdown marker, and releases the locks.
One thread and one event loop own all of it.
"""

from __future__ import annotations

import asyncio
from functools import cached_property, partial
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import UUID

from odradek.broker.api import NEVER_SLICED, SERVED, WITH_RECORDS, has_unbounded_response, load_handler, load_module, pieces_of
from odradek.broker.coordination.group_coordinator import GroupCoordinator
from odradek.broker.coordination.services import CoordinatorServices
from odradek.broker.coordination.transaction_coordinator import TransactionCoordinator
from odradek.broker.large import ResponseMemory
from odradek.broker.network.dispatch import Dispatcher
from odradek.broker.network.large_requests import LargeRequests
from odradek.broker.network.listeners import advertised_endpoints
from odradek.broker.quotas.quota_switch import QuotaSwitch
from odradek.broker.replica.fetch_sessions import FetchSessions
from odradek.broker.replica.housekeeping import Housekeeping
from odradek.broker.replica.inspections import Inspections
from odradek.broker.replica.log_cleaner import LogCleaner
from odradek.broker.replica.partition import Partition, wake_fetches
from odradek.broker.replica.partitions import Partitions
from odradek.broker.replica.replica_moves import ReplicaMoves
from odradek.broker.security.acl.access import authorization
from odradek.broker.start.storage_start import open_storage
from odradek.common.config.definitions import InvalidConfig
from odradek.common.config.listener_config import parse_endpoints
from odradek.common.logging import LineLimit
from odradek.common.logging import log as broker_log
from odradek.controller.cluster.lone_controller import LoneController
from odradek.controller.metadata.auto_topic_creation import AutoTopicCreation
from odradek.controller.metadata.cluster_metadata import PublishingOrder
from odradek.controller.metadata.cluster_view import Cluster
from odradek.protocol.errors import KafkaError
from odradek.timing.driver import AsyncioDriver
from odradek.timing.slices import Slices
from odradek.timing.system_clock import SystemClock
from odradek.timing.threaded_background import ThreadedBackground
from odradek.timing.timer import DelayedOperation, Purgatory, Timer

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.cluster.member import ClusterMember
    from odradek.broker.network.connection_registry import ConnectionRegistry
    from odradek.broker.network.gate import Gate
    from odradek.broker.replica.delayed_fetch import DelayedFetch
    from odradek.broker.replica.delayed_produce import GroupCommit
    from odradek.broker.replica.partition_directories import PartitionDirectories
    from odradek.broker.security.acl.access import Authorization
    from odradek.broker.start.cluster_start import ControllersListeners
    from odradek.broker.start.storage_start import OpenStorage
    from odradek.broker.telemetry.manager import ClientMetricsManager
    from odradek.broker.telemetry.received import Push
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.config.listener_config import Endpoint
    from odradek.common.context import Handler
    from odradek.controller.metadata.cluster_metadata import ClusterMetadata
    from odradek.controller.metadata.delegation_tokens import DelegationTokens
    from odradek.protocol.api_keys import ApiKey
    from odradek.storage.directories.log_manager import LogManager
    from odradek.storage.filesystem import FileSystem
    from odradek.timing.background import Background
    from odradek.timing.clock import Clock


class Broker:
    """A broker over its data directories. Call ``open``, ``serve`` and ``stop`` once each, on the loop that serves it."""

    # Set by open() or join().
    quotas: QuotaSwitch
    # Called with every push of client metrics.
    on_client_push: Callable[[Push], None] | None = None
    # Called when the memory of large responses is free again.
    on_memory_freed: Callable[[], object] | None = None

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        background: Background | None = None,
        file_system: FileSystem | None = None,
        random: Random | None = None,
        call_soon: Callable[[Callable[[], None]], object] | None = None,
        gate: Gate | None = None,
    ) -> None:
        """``call_soon`` replaces the running event loop's; ``gate`` is in front of every handler."""
        self.config = config
        self.clock: Clock = clock or SystemClock()
        self.background: Background = background or ThreadedBackground()
        self.random = random or Random()  # noqa: S311  ids are no secrets
        self.timer = Timer(self.clock)
        self.node_id: int = config["node.id"]
        self.fetch_purgatory: Purgatory[DelayedFetch] = Purgatory("Fetch", self.timer)
        self.produce_purgatory: Purgatory[DelayedOperation] = Purgatory("Produce", self.timer)
        self.inspections = Inspections(self.background)
        self.pattern_matches = Inspections(self.background)
        self.line_limit = LineLimit(self.clock)
        self.partitions = Partitions()
        self.fetch_sessions = FetchSessions(config["max.incremental.fetch.session.cache.slots"], self.random)
        self._call_soon = call_soon
        # Called each time the coordinators have loaded much long-lived state.
        self.on_bulk_load: Callable[[], object] = _ignore
        # True if a separate process compacts logs, instead of a thread. Set it before ``open``.
        self.cleans_in_process = False
        # True to check periodically for removed data directories. Set it before ``open``.
        self.looks_for_directories = self.clock.passes_by_itself
        services = CoordinatorServices(
            config=config,
            partitions=self.partitions,
            produce_purgatory=self.produce_purgatory,
            controller=lambda: self.controller,
            timer=self.timer,
            random=self.random,
            call_soon=self.call_soon,
            call_at_turn_end=self._call_at_turn_end,
            on_bulk_load=lambda: self.on_bulk_load(),  # noqa: PLW0108  it is set later
            run_beside=self.pattern_matches.run,
        )
        self.groups = GroupCoordinator(services)
        self.transactions = TransactionCoordinator(services, self.groups.write_marker)
        self.slices = Slices(self.clock.monotonic_ms, self.call_soon)
        large = LargeRequests(self.slices, self.response_memory, pieces_of, NEVER_SLICED, WITH_RECORDS, has_unbounded_response)
        self.dispatcher = Dispatcher(self, self.clock, SERVED, self._handlers(), gate, large)
        # The connections of the server that listens for this broker, if any.
        self.connections: ConnectionRegistry | None = None
        self._file_system = file_system
        # The addresses that clients connect to, by listener. A server replaces them by the bound addresses.
        self.endpoints = self.endpoints_for({each.name: each for each in parse_endpoints("listeners", config["listeners"])})
        self._driver: AsyncioDriver | None = None
        # Called with the reason if no disk is left to serve from: the process should end as if it were killed.
        self.on_failed: Callable[[str], None] | None = None
        self.member: ClusterMember | None = None
        # Set by open() or join(); ``member`` only by join().
        self.log_manager: LogManager
        self.controller: ClusterMetadata
        # The brokers and partitions, as told to clients.
        self.cluster: Cluster
        self.auto_topic_creation: AutoTopicCreation
        self.partition_directories: PartitionDirectories
        self.group_commit: GroupCommit
        self.housekeeping: Housekeeping
        self.moves: ReplicaMoves
        self.log_cleaner: LogCleaner
        self.cluster_id: str

    def _on_memory_freed(self) -> None:
        if self.on_memory_freed is not None:
            self.on_memory_freed()

    @cached_property
    def response_memory(self) -> ResponseMemory:
        """The memory of large responses."""
        limit_bytes = self.config["queued.max.response.bytes"]
        return ResponseMemory(limit_bytes, self.timer, self.clock.monotonic_ms, self.call_soon, self._on_memory_freed)

    @cached_property
    def authorization(self) -> Authorization | None:
        """The authorizer; None if there is none."""
        return authorization(self.config, self.clock)

    @cached_property
    def delegation_tokens(self) -> DelegationTokens:
        """Reads delegation tokens, and decides on their changes."""
        from odradek.controller.metadata.delegation_tokens import DelegationTokens

        return DelegationTokens(self.config)

    @cached_property
    def telemetry(self) -> ClientMetricsManager:
        """The manager of client metrics. Created for the first client that asks for its subscriptions."""
        from odradek.broker.telemetry.manager import ClientMetricsManager, TelemetrySurroundings

        surroundings = TelemetrySurroundings(
            max_bytes=lambda: self.config["telemetry.max.bytes"],
            clock=self.clock,
            timer=self.timer,
            new_uuid=self.new_uuid,
            inspections=self.pattern_matches,
            line_limit=self.line_limit,
        )
        manager = ClientMetricsManager(surroundings, self.controller.image)
        self.controller.subscribe(manager, PublishingOrder.BROKER_CONFIGS)
        manager.on_push = self.on_client_push
        if self.connections is not None:
            self.connections.on_lost = manager.lost
        return manager

    @property
    def telemetry_so_far(self) -> ClientMetricsManager | None:
        """The manager of client metrics; None until a client has asked."""
        return self.__dict__.get("telemetry")

    def _handlers(self) -> Callable[[ApiKey], Handler]:
        """Return the loader of handlers. With an authorizer, they check their rules first."""
        if self.authorization is None:
            return load_handler
        from odradek.broker.security.acl.rules import with_rules

        return with_rules(load_module, self.authorization)

    @property
    def listener_names(self) -> list[str]:
        """The names of the listeners for clients."""
        return list(self.endpoints)

    @property
    def purgatories(self) -> tuple[Purgatory[Any], ...]:
        """The purgatories that hold waiting requests."""
        return self.produce_purgatory, self.fetch_purgatory

    @property
    def wake_fetches(self) -> Callable[[Partition], object]:
        """The function that tries the fetches waiting for a partition."""
        return partial(wake_fetches, self.fetch_purgatory)

    @property
    def timer_driver(self) -> AsyncioDriver | None:
        """The driver of the timer; None before the start, and under a clock that does not pass by itself."""
        return self._driver

    def advertised(self, listener_name: str) -> tuple[str, int]:
        """Return the (host, port) that clients of a listener are told to connect to."""
        endpoint = self.endpoints[listener_name]
        return endpoint.host, endpoint.port

    def endpoints_for(self, bound: dict[str, Endpoint]) -> dict[str, Endpoint]:
        """Return the addresses for clients: ``advertised.listeners``, else the ``bound`` ones."""
        return advertised_endpoints(bound, parse_endpoints("advertised.listeners", self.config["advertised.listeners"] or ()))

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back in the next turn of the event loop."""
        (self._call_soon or asyncio.get_running_loop().call_soon)(callback)

    def _call_at_turn_end(self, callback: Callable[[], None]) -> None:
        """Call back in the next turn of the event loop. The answers that ``callback`` gives are sent together."""
        self.call_soon(callback if self.connections is None else partial(self.connections.outbox.run, callback))

    @property
    def is_member(self) -> bool:
        """Return whether this broker is in a cluster: its controller is elsewhere, or listens for other brokers."""
        return "controller" not in self.config["process.roles"] or bool(self.config.controller_endpoints)

    async def join(self, listeners: ControllersListeners | None) -> None:
        """Open everything as a broker of a cluster. ``listeners`` are its controller's, if that is in this process.

        Raises the errors of ``join_cluster``.
        """
        from odradek.broker.cluster.leader_hints import LeaderHints
        from odradek.broker.start.cluster_start import join_cluster

        self._drive()
        try:
            storage, self.member = await join_cluster(self, self._file_system, listeners)
        except BaseException:
            self._stop_driving()
            raise
        image = storage.controller.image
        hints = LeaderHints(image, Cluster(image, self.node_id))
        self.dispatcher.add_gate(hints)
        self.transactions.others = self.member.peers
        self.dispatcher.add_gate(self.member.forwarding)
        self._opened(storage, hints)
        self.member.serve()

    def start(self) -> None:
        """Open and serve, for a broker without listeners. Raises the errors of ``open``."""
        self.open()
        self.serve()

    def open(self) -> None:
        """Open everything on disk. After an error nothing is open.

        Raises DataDirectoryLocked, InconsistentDataDirectory, OSError; InvalidConfig if the controller is elsewhere: ``join``
        then.
        """
        if self.is_member:
            raise InvalidConfig("process.roles", "broker", "broker,controller: a broker without listeners cannot join a cluster")
        storage = open_storage(self, self._file_system)
        self._drive()
        self._opened(storage)

    def _drive(self) -> None:
        """Drive the timer, if the clock passes by itself."""
        if self.clock.passes_by_itself and self._driver is None:
            self._driver = AsyncioDriver(self.timer, asyncio.get_running_loop())

    def _stop_driving(self) -> None:
        if self._driver is not None:
            self._driver.close()
        self.timer.close()

    def _opened(self, storage: OpenStorage, first_gate: Gate | None = None) -> None:
        """Set up everything that uses the storage. ``first_gate`` is the first of the broker's own gates."""
        self.log_manager = storage.log_manager
        self.controller = storage.controller
        self.cluster = Cluster(self.controller.image, self.node_id, self.partitions.serves)
        self.partitions.is_elsewhere = self.cluster.has_partition
        add_gate = partial(self.dispatcher.add_gate, before=first_gate)
        self.quotas = QuotaSwitch(self.controller.image.quotas, self.config, self.clock, add_gate, self.dispatcher.remove_gate)
        self.controller.subscribe(self.quotas, PublishingOrder.QUOTAS)
        if self.authorization is not None:
            from odradek.controller.metadata.acls import AclPublisher

            acls = AclPublisher(self.authorization.authorizer.acls, self.controller.image)
            self.controller.subscribe(acls, PublishingOrder.ACLS)
        self.auto_topic_creation = AutoTopicCreation(
            self.controller,
            self.config["num.partitions"],
            self.slices,
            take_of=self.quotas.take_of,
            line_limit=self.line_limit,
        )
        self.group_commit = storage.group_commit
        self.partition_directories = storage.partition_directories
        self.cluster_id = storage.cluster_id
        self.housekeeping = Housekeeping(
            self.config, self.log_manager, self.timer, self.background, looks_for_directories=self.looks_for_directories
        )
        self.moves = ReplicaMoves(self.config, self.partitions, self.log_manager, self.controller, self.timer, self.housekeeping)
        self.log_cleaner = LogCleaner(
            self.config, self.log_manager, self.timer, self.background, in_process=self.cleans_in_process
        )

    def serve(self) -> None:
        """Load the coordinators, and resume the moves that the last stop has interrupted."""
        self.groups.start()
        self.transactions.start()
        self.moves.resume()
        if self.config["delegation.token.secret.key"] and isinstance(self.controller, LoneController):
            from odradek.controller.metadata.delegation_tokens import TokenExpiry

            TokenExpiry(self.controller, self.timer, self.config).start()

    def log_start(self) -> None:
        """Log the configs' warnings, how long the recovery of logs took, and warnings about users and secrets.

        The first log line is slow, as it sets up logging. Call this after clients have been told that they may connect.
        """
        for warning in self.config.warnings:
            broker_log.warn(warning)
        manager = self.log_manager
        if manager.recovered_logs:
            broker_log.info(
                "logs recovered: the last stop was not clean", logs=manager.recovered_logs, took_ms=round(manager.load_ms)
            )
        from odradek.broker.start.start_warnings import warn_if_nobody_can_log_in, warn_of_readable_directories

        image = self.controller.image
        warn_if_nobody_can_log_in(self.config, image)
        if self._file_system is None:
            warn_of_readable_directories(self.config, image, [directory.path for directory in manager.directories.all])

    async def stop(self) -> None:
        """Answer the waiting requests, then close."""
        self.answer_waiting()
        await self.finish()

    def answer_waiting(self) -> None:
        """Answer every waiting request. Members of a rebalancing group are told to look for another coordinator."""
        self.inspections.close()
        self.pattern_matches.close()
        self.transactions.close()
        self.groups.close()
        for operation in self.fetch_purgatory.waiting():
            operation.force_complete()

    async def finish(self) -> None:
        """Wait for the work in threads, then close. The waiting requests must have been answered."""
        if self.member is not None:
            await self.member.close()
        self.slices.close()
        self.timer.close()
        self.moves.close()
        self.log_cleaner.close()
        await self.background.finish()
        await self.group_commit.finish()
        self.close()

    def new_uuid(self) -> UUID:
        """Return a random UUID, drawn with this broker's seed."""
        return UUID(int=self.random.getrandbits(128), version=4)

    def fail(self, reason: str) -> None:
        """Report that there is nothing left to serve from."""
        broker_log.warn("broker failed", reason=reason)
        if self.on_failed is not None:
            self.on_failed(reason)

    def abandon(self) -> None:
        """End like a killed process: flush, answer and report nothing.

        Callbacks that are already scheduled on the loop may still run; they must find files that they cannot write.
        """
        self.background.abandon()
        if self.member is not None:
            self.member.abandon()
        self.slices.close()
        self._stop_driving()
        self.groups.abandon()
        self.transactions.abandon()
        if hasattr(self, "log_manager"):
            self.log_manager.release()

    def close(self) -> None:
        """Flush, mark the shutdown clean, and release the locks. All work must have ended."""
        self._stop_driving()
        try:
            self.controller.close()
        except (KafkaError, OSError) as error:
            broker_log.warn("cannot flush the metadata log", reason=str(error))
        except BaseException:
            self.log_manager.release()
            raise
        self.log_manager.shutdown(now_ms=self.clock.now_ms(), for_each=partial(self.background.for_each, name="close"))


def _ignore() -> None:
    """No-op callback."""
