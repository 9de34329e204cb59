"""The broker without its listeners: puts all rooms together, serves, and closes. ``broker_server`` adds the listeners.

``Broker.open`` takes a broker's place in its cluster, opens every log, and returns the broker, complete. After an unclean stop,
logs are recovered. ``serve`` loads the coordinators and resumes moves. From then on ``dispatcher`` answers requests from any
source. ``stop`` answers the waiting requests, flushes, writes the checkpoints and the clean-shutdown marker, and releases the
locks. One thread and one event loop own all of it.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from odradek.broker.api import NEVER_SLICED, SERVED, WITH_RECORDS, has_unbounded_response, load_handler, load_module, pieces_of
from odradek.broker.coordination.group_coordinator import GroupCoordinator
from odradek.broker.coordination.services import CoordinatorServices
from odradek.broker.coordination.share_coordinator import ShareCoordinator
from odradek.broker.coordination.transaction_coordinator import TransactionCoordinator
from odradek.broker.large import ResponseMemory
from odradek.broker.network.dispatch import Dispatcher
from odradek.broker.network.large_requests import LargeRequests
from odradek.broker.network.listeners import advertised_endpoints
from odradek.broker.quotas.quota_switch import QuotaSwitch
from odradek.broker.replica.fetch_sessions import FetchSessions
from odradek.broker.replica.inspections import Inspections
from odradek.broker.replica.log_cleaner import LogCleaner
from odradek.broker.security.acl.access import authorization
from odradek.broker.security.tokens import NodeCredentials
from odradek.broker.start.storage_start import Joined, OpenStorage, found_cluster, log_dirs, open_storage
from odradek.common.config.definitions import InvalidConfig
from odradek.common.config.listener_config import parse_endpoints
from odradek.common.logging import LineLimit
from odradek.common.logging import log as broker_log
from odradek.controller.metadata.auto_topic_creation import AutoTopicCreation
from odradek.controller.metadata.cluster_metadata import PublishingOrder
from odradek.controller.metadata.cluster_view import Cluster
from odradek.protocol.errors import KafkaError
from odradek.storage.directories.data_directory import Reserve, is_full
from odradek.storage.filesystem import RealFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.broker.network.connection_registry import ConnectionRegistry
    from odradek.broker.network.gate import Gate
    from odradek.broker.security.acl.access import Authorization
    from odradek.broker.share.share_partition_manager import SharePartitionManager
    from odradek.broker.share.share_persister import SharePersister
    from odradek.broker.start.shared_server import SharedServer
    from odradek.broker.telemetry.manager import ClientMetricsManager
    from odradek.broker.telemetry.received import Push
    from odradek.common.config.listener_config import Endpoint
    from odradek.common.context import Handler
    from odradek.controller.metadata.client_quotas import ClientQuotas
    from odradek.controller.metadata.delegation_tokens import DelegationTokens
    from odradek.protocol.api_keys import ApiKey
    from odradek.timing.timer import Purgatory


def _ignore(*_: object) -> None:
    """No-op callback."""


@dataclass(frozen=True, slots=True)
class BrokerOptions:
    """The choices of the program that runs a broker.

    ``gates`` are in front of every handler, before the broker's own. With ``cleans_in_process``, a separate process compacts
    logs, instead of a thread. With ``looks_for_directories``, the broker notices within seconds if a data directory is removed.
    None stands for True under a clock that passes by itself, and else for False.

    ``on_open`` gets the broker just before it listens. ``on_bulk_load`` is called each time much long-lived state has been
    loaded. ``on_memory_freed`` is called when the memory of large responses is free again. ``on_client_push`` gets every push of
    client metrics.
    """

    gates: Sequence[Gate] = ()
    cleans_in_process: bool = False
    looks_for_directories: bool | None = None
    on_open: Callable[[Broker], object] = _ignore
    on_bulk_load: Callable[[], object] = _ignore
    on_memory_freed: Callable[[], object] = _ignore
    on_client_push: Callable[[Push], None] = _ignore


DEFAULTS: Final = BrokerOptions()


class Broker:
    """A broker over its open data directories. Call ``serve`` and ``stop`` once each, on the loop that serves it.

    All handlers have it as their services.
    """

    def __init__(
        self,
        shared: SharedServer,
        joined: Joined,
        storage: OpenStorage,
        connections: ConnectionRegistry | None = None,
        options: BrokerOptions = DEFAULTS,
    ) -> None:
        """``connections`` are those of the server that listens for this broker, if any."""
        self._shared = shared
        self._options = options
        config = self.config = shared.config
        self.node_id = shared.node_id
        self.clock = shared.clock
        self.background = shared.background
        self.random = shared.random
        self.timer = shared.timer
        self.timer_driver = shared.timer_driver
        self.slices = shared.slices
        self.call_soon = shared.call_soon
        self.new_uuid = shared.new_uuid
        self.partitions = joined.replicas.partitions
        self.fetch_purgatory = joined.replicas.fetch_purgatory
        self.produce_purgatory = joined.replicas.produce_purgatory
        self.member = joined.membership
        self.controller = self.member.metadata
        # The addresses that clients connect to, by listener.
        self.endpoints = joined.endpoints
        self.connections = connections
        self.log_manager = storage.log_manager
        self.group_commit = storage.group_commit
        self.partition_directories = storage.partition_directories
        self.housekeeping = storage.housekeeping
        self.moves = storage.moves
        self.cluster_id = storage.cluster_id
        self.inspections = Inspections(self.background)
        self.pattern_matches = Inspections(self.background)
        self.line_limit = LineLimit(self.clock)
        self.fetch_sessions = FetchSessions(config["max.incremental.fetch.session.cache.slots"], self.random)
        self.log_cleaner = LogCleaner(config, self.log_manager, self.timer, self.background, in_process=options.cleans_in_process)
        # The memory of large responses.
        self.response_memory = ResponseMemory(
            config["queued.max.response.bytes"],
            self.timer,
            self.clock.monotonic_ms,
            self.call_soon,
            options.on_memory_freed,
        )
        # The brokers and partitions in the answers to clients.
        self.cluster = Cluster(self.controller.image, self.node_id, self.partitions.serves)
        self.partitions.is_elsewhere = self.cluster.has_partition
        # The authorizer; None if there is none.
        self.authorization: Authorization | None = authorization(config, self.clock)
        self.credentials = NodeCredentials(self.controller, lambda: self.delegation_tokens)
        services = self._make_coordinator_services()
        self.groups = GroupCoordinator(services)
        self.transactions = TransactionCoordinator(services, self.groups.write_marker, self.member.peers)
        self.shares = ShareCoordinator(services)
        self.partition_ends = self.member.partition_ends
        large = LargeRequests(self.slices, self.response_memory, pieces_of, NEVER_SLICED, WITH_RECORDS, has_unbounded_response)
        self.dispatcher = Dispatcher(self, self.clock, SERVED, self._handlers(), large=large)
        self.quotas = self._add_gates()
        self.auto_topic_creation = AutoTopicCreation(
            self.controller,
            config["num.partitions"],
            self.slices,
            take_of=self.quotas.take_of,
            line_limit=self.line_limit,
        )

    @classmethod
    def open(
        cls,
        shared: SharedServer,
        joined: Joined,
        connections: ConnectionRegistry | None = None,
        options: BrokerOptions = DEFAULTS,
    ) -> Broker:
        """Open every log, and return the broker. Raises the errors of ``open_storage``; after one, no lock is kept."""
        looks = options.looks_for_directories
        looks = shared.clock.passes_by_itself if looks is None else looks
        try:
            storage = open_storage(shared, joined, looks_for_directories=looks)
            storage.partition_directories.on_many_created = options.on_bulk_load
            return cls(shared, joined, storage, connections, options)
        except BaseException:
            joined.locked.log_manager.release()
            raise

    @classmethod
    def open_alone(
        cls,
        shared: SharedServer,
        bound: dict[str, Endpoint],
        connections: ConnectionRegistry | None = None,
        options: BrokerOptions = DEFAULTS,
    ) -> Broker:
        """Open a broker that is a cluster of one. If a disk is full, use the reserves.

        Raises the errors of ``found_cluster`` and ``open``. After an error no lock is kept.
        """
        endpoints = advertised_endpoints(shared.config, bound)
        try:
            return cls.open(shared, found_cluster(shared, endpoints), connections, options)
        except (KafkaError, OSError) as error:
            paths = log_dirs(shared.config) if is_full(error) else []
            released = [Reserve(shared.file_system, path, 0).release() for path in paths]
            if not any(released):
                raise
        return cls.open(shared, found_cluster(shared, endpoints), connections, options)

    @classmethod
    def start(cls, shared: SharedServer, options: BrokerOptions = DEFAULTS) -> Broker:
        """Open a broker without listeners, and serve. After an error nothing is open.

        Raises the errors of ``open_alone``; InvalidConfig if the broker would not be alone.
        """
        config = shared.config
        with ExitStack() as undo:
            undo.callback(shared.abandon)
            if not config.is_alone:
                reason = "broker,controller: a broker without listeners cannot join a cluster"
                raise InvalidConfig("process.roles", "broker", reason)
            bound = {each.name: each for each in parse_endpoints("listeners", config["listeners"])}
            broker = cls.open_alone(shared, bound, options=options)
            undo.callback(broker.abandon)
            broker.serve()
            undo.pop_all()
        return broker

    def _make_coordinator_services(self) -> CoordinatorServices:
        return CoordinatorServices(
            config=self.config,
            partitions=self.partitions,
            produce_purgatory=self.produce_purgatory,
            controller=self.controller,
            timer=self.timer,
            random=self.random,
            call_soon=self.call_soon,
            call_at_turn_end=self._call_at_turn_end,
            on_bulk_load=self._options.on_bulk_load,
            run_beside=self.pattern_matches.run,
        )

    @cached_property
    def share_persister(self) -> SharePersister:
        """Keeps the state of share partitions. Created for the first share group."""
        # 40 ms, and many brokers have no share groups.
        from odradek.broker.share.share_persister import SharePersister

        return SharePersister(
            self.controller,
            self.shares.ask,
            self.timer,
            self.random,
            node_id=self.node_id,
            others=self.member.share_peers,
        )

    def _add_gates(self) -> QuotaSwitch:
        """Add the gates: the program's, the quotas' while there are any, those of the cluster."""
        dispatcher, gates = self.dispatcher, self.member.gates
        for gate in (*self._options.gates, *gates):
            dispatcher.add_gate(gate)
        add_gate = partial(dispatcher.add_gate, before=gates[0]) if gates else dispatcher.add_gate
        quotas = QuotaSwitch(self.controller.image.quotas, self.config, self.clock, add_gate, dispatcher.remove_gate)
        self.controller.subscribe(quotas, PublishingOrder.QUOTAS)
        return quotas

    @cached_property
    def delegation_tokens(self) -> DelegationTokens:
        """Reads delegation tokens, and decides on their changes."""
        from odradek.controller.metadata.delegation_tokens import DelegationTokens

        return DelegationTokens(self.config)

    @cached_property
    def share_partitions(self) -> SharePartitionManager:
        """The share groups that fetch from this broker. Created for the first of their requests."""
        from odradek.broker.share.dead_letter_queue import TOPIC_CONFIGS, DeadLetterServices, ShareGroupDeadLetterQueue
        from odradek.broker.share.share_group_configs import ShareGroupConfigs
        from odradek.broker.share.share_partition_manager import SharePartitionManager

        configs = ShareGroupConfigs(self.config, self.controller.image, self.inspections, self.clock.now_ms)
        letters = DeadLetterServices(
            node_id=self.node_id,
            partitions=self.partitions,
            image=self.controller.image,
            produce_purgatory=self.produce_purgatory,
            timer=self.timer,
            random=self.random,
            create_topics=partial(self.controller.auto_create, configs=TOPIC_CONFIGS),
            others=self.member.dead_letter_peers,
        )
        queue = ShareGroupDeadLetterQueue(letters, configs)
        shares = SharePartitionManager(
            self.partitions.find_by_id, self.share_persister, self.timer, configs, self.slices, self.call_soon, queue
        )
        self.controller.subscribe(shares, PublishingOrder.BROKER_CONFIGS)
        if self.connections is not None:
            self.connections.on_lost.append(shares.sessions.connection_lost)
        return shares

    @property
    def share_partitions_so_far(self) -> SharePartitionManager | None:
        """The share groups that fetch from this broker; None until there is one."""
        return self.__dict__.get("share_partitions")

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
        manager.on_push = self._options.on_client_push
        if self.connections is not None:
            self.connections.on_lost.append(manager.lost)
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

        self.authorization.follow(self.controller)
        return with_rules(load_module, self.authorization)

    @property
    def ip_quotas(self) -> ClientQuotas:
        """The quotas on addresses."""
        return self.controller.image.quotas

    @property
    def listener_names(self) -> list[str]:
        """The names of the listeners for clients."""
        return list(self.endpoints)

    @property
    def purgatories(self) -> tuple[Purgatory[Any], ...]:
        """The purgatories that hold waiting requests."""
        shares = self.share_partitions_so_far
        share_purgatories = () if shares is None else (shares.purgatory,)
        return self.produce_purgatory, self.fetch_purgatory, *share_purgatories

    def advertised(self, listener_name: str) -> tuple[str, int]:
        """Return the (host, port) that clients of a listener are told to connect to."""
        endpoint = self.endpoints[listener_name]
        return endpoint.host, endpoint.port

    def _call_at_turn_end(self, callback: Callable[[], None]) -> None:
        """Call back in the next turn of the event loop. The answers that ``callback`` gives are sent together."""
        self.call_soon(callback if self.connections is None else partial(self.connections.outbox.run, callback))

    def serve(self) -> None:
        """Load the coordinators, and resume the moves that the last stop has interrupted."""
        self.groups.start()
        self.transactions.start()
        self.shares.start()
        self.moves.resume()

    def log_start(self) -> None:
        """Log the configs' warnings, how long the recovery of logs took, and warnings about users and secrets.

        Call this when the broker listens: clients need not wait for it.
        """
        for warning in self.config.warnings:
            broker_log.warn(warning)
        manager = self.log_manager
        if manager.recovered_logs:
            broker_log.info(
                "logs recovered: the last stop was not clean", logs=manager.recovered_logs, took_ms=round(manager.load_ms)
            )
        from odradek.broker.start.start_warnings import warn_if_nobody_can_log_in, warn_of_readable_directories  # 2 ms

        image = self.controller.image
        warn_if_nobody_can_log_in(self.config, image)
        if isinstance(self._shared.file_system, RealFileSystem):
            warn_of_readable_directories(self.config, image, [directory.path for directory in manager.directories.all])

    async def stop(self) -> None:
        """Answer the waiting requests, then close."""
        self.answer_waiting()
        await self.finish()

    def answer_waiting(self) -> None:
        """Answer every waiting request. Members of a rebalancing group are told to look for another coordinator."""
        self.inspections.close()
        self.pattern_matches.close()
        self.shares.close()
        self.transactions.close()
        self.groups.close()
        for operation in self.fetch_purgatory.waiting():
            operation.force_complete()
        if self.share_partitions_so_far is not None:
            self.share_partitions_so_far.close()

    async def finish(self) -> None:
        """Wait for the work in threads, then close. The waiting requests must have been answered."""
        await self.member.close()
        self.moves.close()
        self.log_cleaner.close()
        await self._shared.finish()
        await self.group_commit.finish()
        self.close()

    def close(self) -> None:
        """Flush, mark the shutdown clean, and release the locks. All work must have ended."""
        self._shared.close()
        try:
            self.controller.close()
        except (KafkaError, OSError) as error:
            broker_log.warn("cannot flush the metadata log", reason=str(error))
        except BaseException:
            self.log_manager.release()
            raise
        self.log_manager.shutdown(now_ms=self.clock.now_ms(), for_each=partial(self.background.for_each, name="close"))

    def abandon(self) -> None:
        """End like a killed process: flush, answer and report nothing.

        Callbacks that are already scheduled on the loop may still run; they must find files that they cannot write.
        """
        self.member.abandon()
        self._shared.abandon()
        self.groups.abandon()
        self.transactions.abandon()
        self.shares.abandon()
        self.log_manager.release()
