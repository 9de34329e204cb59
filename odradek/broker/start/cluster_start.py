"""Joins a broker to its cluster: cluster id, locks, the cluster's metadata, and the membership.

The controllers are elsewhere, or the only controller is in this process and listens for other brokers. ``OwnController`` is
that controller as its broker uses it: the same image and log, and requests without a socket. The broker registers and sends
heartbeats like any other. Requests go to the handler without being encoded, except forwarded ones.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from odradek.broker.api.controller import SERVED
from odradek.broker.cluster.followed_metadata import MetadataSource, ObservedMetadata
from odradek.broker.cluster.member import ClusterMember
from odradek.broker.cluster.peers import PeerConnections
from odradek.broker.start.storage_start import (
    Joined,
    LockedDirectories,
    Replicas,
    lock_directories,
    log_dirs,
    metadata_log_config,
)
from odradek.client.api import ClientError
from odradek.common.config.checks import quorum_nodes
from odradek.common.context import OwnSession, RequestContext
from odradek.common.logging import log as broker_log
from odradek.controller.quorum.controller_channel import AnswerT, ControllerUnavailable
from odradek.controller.quorum.fetch_messages import ObserverIdentity
from odradek.controller.quorum.leader_discovery import QuorumNode
from odradek.controller.quorum.observer import ObserverConfig, ObserverHost
from odradek.controller.quorum.start import find_cluster_id
from odradek.storage.directories import checkpoints
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.broker.cluster.followed_metadata import ControllerLink
    from odradek.broker.network.listeners import ServedListeners
    from odradek.broker.start.controller_node import ControllerNode
    from odradek.broker.start.shared_server import SharedServer
    from odradek.client.api import Api, RequestT
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.config.listener_config import Endpoint
    from odradek.controller.metadata.cluster_metadata import MetadataPublisher, PublishingOrder
    from odradek.controller.metadata.image import MetadataImage
    from odradek.storage.filesystem import FileSystem


async def join_cluster(shared: SharedServer, endpoints: dict[str, Endpoint], listeners: ServedListeners | None) -> Joined:
    """Lock the directories, and join the cluster that ``controller.quorum.*`` name. The broker is still fenced then.

    With ``listeners``, the cluster's controller starts in this process. Otherwise an empty data directory takes the cluster id
    from a controller.

    Raises MembershipLost; InvalidConfig if it is not clear how to connect to others; the errors of ``lock_directories``;
    LogCorrupt, MetadataUnreadable or ValueError for the metadata log. After an error no lock is kept.
    """
    config = shared.config
    peers = PeerConnections(config, shared.clock, to_controllers=listeners is None)
    nodes: list[QuorumNode] = []
    cluster_id = None
    if listeners is None:
        configured = quorum_nodes(config["controller.quorum.voters"], config["controller.quorum.bootstrap.servers"])
        nodes = [QuorumNode(*node) for node in configured]
        cluster_id = await _cluster_id(shared, nodes, peers)
    replicas = Replicas(shared.timer)
    locked = lock_directories(shared, replicas, cluster_id)
    try:
        if listeners is None:
            source: MetadataSource = _observe(shared, locked, nodes, peers)
        else:
            source = await _control(shared, locked, listeners)
        member = ClusterMember(
            shared, replicas.partitions, endpoints, locked.log_manager, locked.identity, source, peers.to_broker
        )
        try:
            await member.catch_up()
        except BaseException:
            await member.close()
            raise
    except BaseException:
        locked.log_manager.release()
        raise
    return Joined(replicas, locked, member, endpoints)


async def _cluster_id(shared: SharedServer, nodes: Sequence[QuorumNode], peers: PeerConnections) -> str:
    known = _known_cluster_id(shared.config, shared.file_system)
    if known is not None:
        return known
    timeout_ms = shared.config["initial.broker.registration.timeout.ms"]
    return await find_cluster_id(nodes, peers.to_controller, shared.timer, shared.random, timeout_ms=timeout_ms)


def _observe(
    shared: SharedServer, locked: LockedDirectories, nodes: Sequence[QuorumNode], peers: PeerConnections
) -> ObservedMetadata:
    """Open the copy of a metadata log elsewhere. Raises LogCorrupt, OSError, ValueError, KafkaError."""
    config = shared.config
    host = ObserverHost(
        file_system=shared.file_system,
        timer=shared.timer,
        slices=shared.slices,
        random=shared.random,
        connect=peers.to_controller,
        warn=broker_log.warn,
    )
    identity = locked.identity
    return ObservedMetadata(
        host,
        ObserverIdentity(identity.cluster_id, shared.node_id, identity.directory_id),
        nodes,
        data_dir=locked.log_manager.directories.metadata.path,
        config=config,
        observer_config=_observer_config(config, nodes),
        log_config=metadata_log_config(config),
        background=shared.background,
    )


async def _control(shared: SharedServer, locked: LockedDirectories, listeners: ServedListeners) -> MetadataSource:
    """Start the cluster's controller. Raises MetadataUnreadable, LogCorrupt, OSError, ValueError, KafkaError."""
    from odradek.broker.start.controller_node import ControllerNode

    node = ControllerNode(shared, locked.log_manager, locked.identity, listeners.bound)
    await listeners.serve(node)
    node.start()
    # An earlier broker with this id has ended together with its controller.
    node.controller.end_session(shared.node_id)
    return OwnController(node)


def _observer_config(config: BrokerConfig, nodes: Sequence[QuorumNode]) -> ObserverConfig:
    return ObserverConfig(
        fetch_timeout_ms=config["controller.quorum.fetch.timeout.ms"],
        request_timeout_ms=config["controller.quorum.request.timeout.ms"],
        retry_backoff_ms=config["controller.quorum.retry.backoff.ms"],
        fetch_max_bytes=config["controller.quorum.fetch.max.bytes"],
        voter_ids=tuple(node.node_id for node in nodes if node.node_id is not None),
    )


def _known_cluster_id(config: BrokerConfig, file_system: FileSystem) -> str | None:
    """Return the cluster id in the data directories. ``lock_directories`` will refuse unreadable ones."""
    for path in log_dirs(config):
        try:
            found = checkpoints.read_meta_properties(file_system, path)
        except (ValueError, OSError):
            continue
        if found is not None and found.get("cluster.id"):
            return found["cluster.id"]
    return None


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
