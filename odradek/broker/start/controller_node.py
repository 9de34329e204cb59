"""The controller of a cluster: log, decisions, and dispatch. ``ControllerServer`` adds listeners, in a process of its own.

The controller owns the metadata log of the process, and leads a quorum of one voter. Brokers follow the log, register, and ask
for changes.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Final

from odradek.broker.api.controller import SERVED, module_of
from odradek.broker.network.dispatch import CloseConnection, Dispatcher
from odradek.broker.network.listeners import ServedListeners, advertised_endpoints, tls_front
from odradek.broker.quotas.quota_switch import QuotaSwitch
from odradek.broker.security.acl.access import authorization
from odradek.broker.security.tokens import NodeCredentials
from odradek.broker.start.storage_start import log_manager_for, open_metadata_log, registered_endpoints, registered_features
from odradek.common.logging import log as broker_log
from odradek.controller.cluster.cluster_controller import ClusterController
from odradek.controller.cluster.quorum_leader import QuorumLeader, QuorumLog
from odradek.controller.metadata.cluster_metadata import PublishingOrder
from odradek.controller.metadata.writer import ControllerHost
from odradek.controller.quorum.leader_discovery import ElectionFile
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.metadata_records.log_control import NoOpRecord
from odradek.protocol.metadata_records.nodes import RegisterControllerRecord
from odradek.protocol.quorum_records import Voter, VoterEndpoint
from odradek.storage.directories.data_directory import METADATA_TOPIC
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from odradek.broker.start.shared_server import SharedServer
    from odradek.common.config.listener_config import Endpoint
    from odradek.common.context import Handler, Session
    from odradek.controller.metadata.client_quotas import ClientQuotas
    from odradek.controller.metadata.delegation_tokens import DelegationTokens
    from odradek.protocol.api_keys import ApiKey
    from odradek.storage.directories.data_directory import DirectoryIdentity
    from odradek.storage.directories.log_manager import LogManager

_LENGTH_BYTES: Final = 4


class ControllerNode:
    """A controller, opened by its constructor. Call ``start`` and ``close`` once each. Loop thread only.

    All handlers have it as their services.
    """

    def __init__(
        self,
        shared: SharedServer,
        log_manager: LogManager,
        identity: DirectoryIdentity,
        bound: dict[str, Endpoint],
    ) -> None:
        """Open the metadata log, and begin an epoch. Brokers connect to the ``bound`` addresses, or to the advertised ones.

        Raises MetadataUnreadable, LogCorrupt, OSError, ValueError, KafkaError.
        """
        self.config = shared.config
        self.node_id = shared.node_id
        self.clock = shared.clock
        self.slices = shared.slices
        # Brokers limit the memory of responses to their many clients. This node has few.
        self.response_memory = None
        self.cluster_id = identity.cluster_id
        # Topics have no partitions on this node, so there is nothing to wait for.
        self.partition_directories = _NoPartitions()
        self._timer = shared.timer
        self._fail = shared.fail
        self.new_uuid = shared.new_uuid
        self._incarnation_id = shared.new_uuid()
        self._is_closed = False
        now_ms = shared.clock.now_ms()
        quorum_log = self.log = open_metadata_log(QuorumLog, shared, log_manager)
        endpoints = advertised_endpoints(shared.config, bound)
        elections = ElectionFile(shared.file_system, log_manager.directories.metadata.file(f"{METADATA_TOPIC}-0"))
        # As with Kafka's controllers: nodes that know only bootstrap servers learn the voters from the log.
        is_dynamic = bool(shared.config["controller.quorum.bootstrap.servers"])
        quorum_log.begin_epoch(
            Voter(shared.node_id, identity.directory_id, [VoterEndpoint(*endpoint) for endpoint in endpoints.values()]),
            seen_epoch=elections.read().epoch,
            is_dynamic=is_dynamic,
            now_ms=now_ms,
        )
        self.leader = QuorumLeader(
            quorum_log,
            node_id=shared.node_id,
            cluster_id=identity.cluster_id,
            directory_id=identity.directory_id,
            endpoints=endpoints,
            clock=shared.clock,
            timer=shared.timer,
        )
        self.controller = ClusterController(
            quorum_log,
            ControllerHost(shared.config, shared.clock, shared.new_uuid, shared.random, shared.background, shared.slices),
            node_id=shared.node_id,
            cluster_id=identity.cluster_id,
        )
        if quorum_log.kraft_version and not is_dynamic:
            # After an update of the feature the log has the voter. Add it again, with its current listeners.
            quorum_log.append_voters(now_ms=now_ms)
        self.controller.subscribe(self.leader, PublishingOrder.OBSERVERS)
        # Brokers apply the quotas on clients. This node applies only the quotas on metadata changes.
        self.quotas = QuotaSwitch(self.controller.image.quotas, shared.config, shared.clock)
        self.controller.subscribe(self.quotas, PublishingOrder.QUOTAS)
        self.authorization = authorization(shared.config, shared.clock)
        self.dispatcher = Dispatcher(self, shared.clock, SERVED, self._handlers())
        self.credentials = NodeCredentials(self.controller, lambda: self.delegation_tokens)

    @property
    def ip_quotas(self) -> ClientQuotas:
        """The quotas on addresses."""
        return self.controller.image.quotas

    @cached_property
    def delegation_tokens(self) -> DelegationTokens:
        """Reads delegation tokens, and decides on their changes."""
        from odradek.controller.metadata.delegation_tokens import DelegationTokens

        return DelegationTokens(self.config)

    def _handlers(self) -> Callable[[ApiKey], Handler]:
        """Return the loader of handlers. With an authorizer, they check their rules first."""
        if self.authorization is None:
            return _load_handler
        from odradek.broker.security.acl.rules import with_rules

        self.authorization.follow(self.controller)
        return with_rules(_load_module, self.authorization)

    def start(self) -> None:
        """Register this controller, and watch over the cluster from now on."""
        broker_log.info("controller leads", node=self.node_id, epoch=self.leader.epoch, end_offset=self.log.end_offset)
        self.controller.write([self._registration()])
        self.controller.start(self._timer)
        if self.config["delegation.token.secret.key"]:
            from odradek.controller.metadata.delegation_tokens import TokenExpiry

            TokenExpiry(self.controller, self._timer, self.config).start()
        self._be_idle_later()

    def answer(self, frame: bytes, session: Session) -> Reply[bytes | KafkaError]:
        """Answer a forwarded request; frames have their headers. KafkaError: UNSUPPORTED_VERSION, UNKNOWN_SERVER_ERROR."""
        reply: Reply[bytes | KafkaError] = Reply()
        try:
            outcome = self.dispatcher.dispatch(frame, session, self.clock.monotonic_ms())
        except MalformedMessage as error:
            reply.complete(KafkaError(ErrorCode.UNSUPPORTED_VERSION, error.reason))
        except CloseConnection:
            reply.complete(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
        else:
            if isinstance(outcome, Reply):
                outcome.when_done(lambda chunks: reply.complete(_joined(chunks)))
            else:
                reply.complete(_joined(outcome))
        return reply

    def answer_waiting(self) -> None:
        """Answer the fetches that wait for records."""
        self.leader.close()

    def close(self) -> None:
        """Answer the waiting fetches, and close the log. Raises KafkaError, OSError."""
        self.abandon()
        self.leader.close()
        self.controller.close()

    def abandon(self) -> None:
        """Stop writing no-op records."""
        self._is_closed = True

    def _registration(self) -> RegisterControllerRecord:
        return RegisterControllerRecord(
            controller_id=self.node_id,
            incarnation_id=self._incarnation_id,
            zk_migration_ready=False,
            end_points=registered_endpoints(self.config, self.leader.endpoints),
            features=registered_features(),
        )

    def _be_idle_later(self) -> None:
        interval_ms = self.config["metadata.max.idle.interval.ms"]
        if interval_ms > 0:
            end_offset = self.log.end_offset
            self._timer.call_after(interval_ms, lambda: self._be_idle(end_offset))

    def _be_idle(self, end_offset: int) -> None:
        """Move the high watermark if nothing else has. If the disk has failed, the controller ends, as Kafka's does."""
        if self._is_closed:
            return
        if self.log.end_offset == end_offset:
            self.controller.write([NoOpRecord()])
        if self.log.has_failed:
            self._fail("the metadata log could not be written")
        else:
            self._be_idle_later()


class _NoPartitions:
    """The (absent) partitions of a node that is only a controller."""

    def when_caught_up(self, reply: Reply[object]) -> Reply[object]:
        """Return ``reply``: there is nothing to catch up with."""
        return reply


def _joined(chunks: object) -> bytes | KafkaError:
    """Return the bytes of a response without its length."""
    if not isinstance(chunks, list):
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return b"".join(chunks)[_LENGTH_BYTES:]


def _load_module(api_key: ApiKey) -> ModuleType:
    return import_module(module_of(api_key))


def _load_handler(api_key: ApiKey) -> Handler:
    return _load_module(api_key).handle  # type: ignore[no-any-return]


class ControllerServer:
    """A controller that serves, and its listeners, as run by ``odradek serve`` if ``process.roles`` is controller.

    Call ``stop`` or ``abandon`` once, on the loop that serves.
    """

    def __init__(self, shared: SharedServer, listeners: ServedListeners, log_manager: LogManager, node: ControllerNode) -> None:
        self.node = node
        self._shared = shared
        self._listeners = listeners
        self.log_manager = log_manager

    @classmethod
    async def start(cls, shared: SharedServer) -> ControllerServer:
        """Bind the listeners, open the metadata log, and serve. After an error nothing is open, and no lock is kept.

        The listeners are bound before anything on disk is touched. Raises DataDirectoryLocked, InconsistentDataDirectory,
        InvalidConfig, MetadataUnreadable, LogCorrupt, KafkaError, OSError, ValueError.
        """
        with ExitStack() as undo:
            undo.callback(shared.abandon)
            endpoints = shared.config.controller_endpoints
            tls = tls_front(shared.config, endpoints, shared.timer, shared.call_soon)
            listeners = ServedListeners(shared, endpoints, tls)
            undo.callback(listeners.close)
            await listeners.bind()
            log_manager = log_manager_for(shared)
            identity = log_manager.start()
            undo.callback(log_manager.release)
            node = ControllerNode(shared, log_manager, identity, listeners.bound)
            await listeners.serve(node)
            node.start()
            undo.pop_all()
        return cls(shared, listeners, log_manager, node)

    @property
    def bound_address(self) -> tuple[str, int]:
        """(host, port) of the first listener."""
        return self._listeners.bound_address

    async def stop(self) -> None:
        """Finish requests in flight, and mark the stop as clean."""
        begun_ms = self._shared.clock.monotonic_ms()
        self.node.abandon()
        await self._listeners.stop()
        await self._shared.finish()
        try:
            self.node.close()
        except (KafkaError, OSError) as error:
            broker_log.warn("cannot flush the metadata log", reason=str(error))
        self.log_manager.shutdown(now_ms=self._shared.clock.now_ms())
        broker_log.info("controller stopped", took_ms=round(self._shared.clock.monotonic_ms() - begun_ms))

    def abandon(self) -> None:
        """End like a killed process."""
        self._listeners.close()
        self.node.abandon()
        self._shared.abandon()
        self.log_manager.release()
