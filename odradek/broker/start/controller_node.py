"""The controller of a cluster without its listeners: log, decisions, and dispatch. ``controller_server`` listens.

It owns the metadata log of the process and leads a quorum of one voter. Brokers follow the log, register, and ask for changes.
Kafka's class is ControllerServer.

``OwnController`` is the controller as a broker in the same process uses it: the same image and log, and requests without a
socket. The broker registers and sends heartbeats like any other. Requests go to the handler without being encoded, except
forwarded ones.
"""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol

from odradek.broker.api.controller import SERVED, module_of
from odradek.broker.network.dispatch import CloseConnection, Dispatcher
from odradek.broker.network.listeners import advertised_endpoints
from odradek.broker.quotas.quota_switch import QuotaSwitch
from odradek.broker.security.acl.access import authorization
from odradek.broker.start.storage_start import open_metadata_log, registered_endpoints, registered_features
from odradek.client.api import ClientError
from odradek.common.config.listener_config import parse_endpoints
from odradek.common.context import OwnSession, RequestContext
from odradek.common.logging import log as broker_log
from odradek.controller.cluster.cluster_controller import ClusterController
from odradek.controller.cluster.quorum_leader import QuorumLeader, QuorumLog
from odradek.controller.metadata.cluster_metadata import PublishingOrder
from odradek.controller.quorum.controller_channel import AnswerT, ControllerUnavailable
from odradek.controller.quorum.leader_discovery import ElectionFile
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.metadata_records.log_control import NoOpRecord
from odradek.protocol.metadata_records.nodes import RegisterControllerRecord
from odradek.protocol.quorum_records import Voter, VoterEndpoint
from odradek.storage.directories.data_directory import METADATA_TOPIC
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random
    from types import ModuleType
    from uuid import UUID

    from odradek.broker.cluster.followed_metadata import ControllerLink
    from odradek.client.api import Api, RequestT
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.config.listener_config import Endpoint
    from odradek.common.context import Handler, Session
    from odradek.controller.metadata.cluster_metadata import MetadataPublisher
    from odradek.controller.metadata.delegation_tokens import DelegationTokens
    from odradek.controller.metadata.image import MetadataImage
    from odradek.protocol.api_keys import ApiKey
    from odradek.storage.directories.data_directory import DirectoryIdentity
    from odradek.storage.directories.log_manager import LogManager
    from odradek.storage.filesystem import FileSystem
    from odradek.timing.background import Background
    from odradek.timing.clock import Clock
    from odradek.timing.slices import Slices
    from odradek.timing.timer import Timer

_LENGTH_BYTES: Final = 4


class ControllerHost(Protocol):
    """The process that hosts the controller."""

    config: BrokerConfig
    node_id: int
    clock: Clock
    timer: Timer
    random: Random
    background: Background
    slices: Slices

    def new_uuid(self) -> UUID:
        """Return a random UUID, drawn with the process's seed."""

    def fail(self, reason: str) -> None:
        """Report that the process should end as if it were killed."""


class ControllerNode:
    """A controller, opened by its constructor. Call ``start`` and ``close`` once each. Loop thread only.

    All handlers have it as their services.
    """

    def __init__(
        self,
        host: ControllerHost,
        file_system: FileSystem,
        log_manager: LogManager,
        identity: DirectoryIdentity,
        bound: dict[str, Endpoint],
    ) -> None:
        """Open the metadata log, and begin an epoch. Brokers connect to the ``bound`` addresses, or to the advertised ones.

        Raises MetadataUnreadable, LogCorrupt, OSError, ValueError, KafkaError.
        """
        self.config = host.config
        self.node_id = host.node_id
        self.clock = host.clock
        self.slices = host.slices
        # Brokers limit the memory of responses to their many clients. This node has few.
        self.response_memory = None
        self.cluster_id = identity.cluster_id
        # Topics have no partitions on this node, so there is nothing to wait for.
        self.partition_directories = _NoPartitions()
        self._timer = host.timer
        self._fail = host.fail
        self.new_uuid = host.new_uuid
        self._incarnation_id = host.new_uuid()
        self._is_closed = False
        now_ms = host.clock.now_ms()
        quorum_log = self.log = open_metadata_log(QuorumLog, host.config, file_system, log_manager, now_ms=now_ms)
        endpoints = advertised_endpoints(
            bound, parse_endpoints("advertised.listeners", host.config["advertised.listeners"] or ())
        )
        elections = ElectionFile(file_system, log_manager.directories.metadata.file(f"{METADATA_TOPIC}-0"))
        # As with Kafka's controllers: nodes that know only bootstrap servers learn the voters from the log.
        is_dynamic = bool(host.config["controller.quorum.bootstrap.servers"])
        quorum_log.begin_epoch(
            Voter(host.node_id, identity.directory_id, [VoterEndpoint(*endpoint) for endpoint in endpoints.values()]),
            seen_epoch=elections.read().epoch,
            is_dynamic=is_dynamic,
            now_ms=now_ms,
        )
        self.leader = QuorumLeader(
            quorum_log,
            node_id=host.node_id,
            cluster_id=identity.cluster_id,
            directory_id=identity.directory_id,
            endpoints=endpoints,
            clock=host.clock,
            timer=host.timer,
        )
        self.controller = ClusterController(
            quorum_log,
            node_id=host.node_id,
            cluster_id=identity.cluster_id,
            config=host.config,
            clock=host.clock,
            new_topic_id=host.new_uuid,
            random=host.random,
            background=host.background,
            slices=host.slices,
        )
        if quorum_log.kraft_version and not is_dynamic:
            # After an update of the feature the log has the voter. Add it again, with its current listeners.
            quorum_log.append_voters(now_ms=now_ms)
        self.controller.subscribe(self.leader, PublishingOrder.OBSERVERS)
        # Brokers apply the quotas on clients. This node applies only the quotas on metadata changes.
        self.quotas = QuotaSwitch(self.controller.image.quotas, host.config, host.clock)
        self.controller.subscribe(self.quotas, PublishingOrder.QUOTAS)
        self.authorization = authorization(host.config, host.clock)
        self.dispatcher = Dispatcher(self, host.clock, SERVED, self._handlers())

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
        from odradek.controller.metadata.acls import AclPublisher

        acls = AclPublisher(self.authorization.authorizer.acls, self.controller.image)
        self.controller.subscribe(acls, PublishingOrder.ACLS)
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
    from importlib import import_module

    return import_module(module_of(api_key))


def _load_handler(api_key: ApiKey) -> Handler:
    return _load_module(api_key).handle  # type: ignore[no-any-return]


_HERE: Final = ("127.0.0.1", 0)


class OwnController:
    """The MetadataSource of a broker in the controller's process. Loop thread only."""

    def __init__(self, node: ControllerNode) -> None:
        self.node = node
        self.image: MetadataImage = node.controller.image
        self.link: ControllerLink = OwnLink(node)

    @property
    def applied_offset(self) -> int:
        """The log's end. A large change in progress is not in the image yet."""
        return self.node.controller.log_end_offset

    @property
    def kraft_version(self) -> int:
        """The finalized ``kraft.version``."""
        return self.node.controller.kraft_version

    def subscribe(self, publisher: MetadataPublisher, order: PublishingOrder) -> None:
        """Call ``publisher`` after each change of the image."""
        self.node.controller.subscribe(publisher, order)

    async def run(self, on_caught_up: Callable[[], object]) -> None:
        """Call back at once, since image and log are the controller's own. Then wait to be cancelled."""
        on_caught_up()
        await asyncio.get_running_loop().create_future()

    def close(self, *, now_ms: int) -> None:  # noqa: ARG002  the controller knows the time
        """Close the controller."""
        self.node.close()


class OwnLink:
    """The ControllerLink of a broker in the controller's process."""

    def __init__(self, node: ControllerNode) -> None:
        self._node = node
        self._is_closed = False

    async def request(self, api: Api[RequestT, AnswerT], request: RequestT, timeout_ms: float) -> AnswerT:
        """Return the controller's response. Raises ControllerUnavailable, ClientError."""
        if self._is_closed:
            raise ControllerUnavailable(f"{api.key.name}: the controller is stopping")
        context = RequestContext(api.key, SERVED[api.key].max_version, 0, None, OwnSession("", _HERE))
        outcome = self._node.dispatcher.call(context, request)
        if isinstance(outcome, Reply):
            outcome = await _response(outcome, timeout_ms / 1000, api.key.name)
        if isinstance(outcome, Exception):
            raise ClientError(f"{api.key.name}: {outcome}")
        answer: AnswerT = outcome
        return answer

    def close(self) -> None:
        """Refuse further requests."""
        self._is_closed = True


async def _response(reply: Reply[object], timeout_s: float, name: str) -> object:
    answered: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    reply.when_done(lambda response: None if answered.done() else answered.set_result(response))
    try:
        return await asyncio.wait_for(answered, timeout_s)
    except TimeoutError as error:
        raise ControllerUnavailable(f"{name}: the controller does not answer") from error
