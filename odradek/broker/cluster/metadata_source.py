"""The source of the cluster's metadata for a broker in a cluster, and its link to the active controller.

Usually the controller is elsewhere (``ObservedMetadata``). A broker in the controller's own process has another source
(``own_controller``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from odradek.controller.metadata.cluster_metadata import Publishers
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.metadata.snapshot_generator import SnapshotGenerator
from odradek.controller.quorum.controller_channel import AnswerT, ChannelConfig, ControllerChannel
from odradek.controller.quorum.start import open_observer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.client.api import Api, RequestT
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.controller.metadata.cluster_metadata import MetadataPublisher, PublishingOrder
    from odradek.controller.quorum.fetch_messages import ObserverIdentity
    from odradek.controller.quorum.leader_discovery import QuorumNode
    from odradek.controller.quorum.observer import ObserverConfig, ObserverHost
    from odradek.storage.log.log_config import LogConfig
    from odradek.timing.background import Background


class ControllerLink(Protocol):
    """The link to the active controller."""

    async def request(self, api: Api[RequestT, AnswerT], request: RequestT, timeout_ms: float) -> AnswerT:
        """Send a request and return the response. Raises ControllerUnavailable, ClientError."""

    def close(self) -> None:
        """Send no more requests."""


class MetadataSource(Protocol):
    """The source of the metadata. ``image`` is read-only for others. ``link`` leads to the active controller."""

    image: MetadataImage
    link: ControllerLink

    @property
    def applied_offset(self) -> int:
        """The offset before which the image has all records."""

    @property
    def kraft_version(self) -> int:
        """The finalized ``kraft.version``, a feature level of the quorum itself."""

    def subscribe(self, publisher: MetadataPublisher, order: PublishingOrder) -> None:
        """Call ``publisher`` after each later change."""

    async def run(self, on_caught_up: Callable[[], object]) -> None:
        """Follow the metadata until cancelled. Call ``on_caught_up`` once, when they have caught up. Raises MembershipLost."""

    def close(self, *, now_ms: int) -> None:
        """Close the metadata log. Raises KafkaError, OSError."""


class ObservedMetadata:
    """The MetadataSource of a broker whose quorum is elsewhere."""

    def __init__(
        self,
        host: ObserverHost,
        identity: ObserverIdentity,
        nodes: Sequence[QuorumNode],
        *,
        data_dir: str,
        config: BrokerConfig,
        observer_config: ObserverConfig,
        log_config: LogConfig,
        background: Background,
    ) -> None:
        """Open the copy of the metadata log. Raises LogCorrupt, OSError, ValueError, KafkaError."""
        self.image = MetadataImage()
        self._publishers = Publishers()
        self._opened = open_observer(
            host,
            identity,
            nodes,
            data_dir=data_dir,
            image=self.image,
            publishers=self._publishers,
            make_snapshots=lambda log: SnapshotGenerator(log, self.image, config, host.timer.clock, background),
            config=observer_config,
            log_config=log_config,
        )
        channel_config = ChannelConfig(request_timeout_ms=config["controller.socket.timeout.ms"])
        client_id = f"broker-{identity.node_id}-to-controller"
        channel = ControllerChannel(client_id, host.connect, host.timer, host.random, channel_config)
        self._opened.observer.on_leader_change = channel.set_leader
        self.link: ControllerLink = channel

    @property
    def applied_offset(self) -> int:
        """The offset after the last record that the image has."""
        return self._opened.follower.applied_offset

    @property
    def kraft_version(self) -> int:
        """The finalized ``kraft.version``."""
        return self._opened.log.kraft_version

    def subscribe(self, publisher: MetadataPublisher, order: PublishingOrder) -> None:
        """Call ``publisher`` after each change of the image."""
        self._publishers.add(publisher, order)

    async def run(self, on_caught_up: Callable[[], object]) -> None:
        """Follow the quorum's log until cancelled. Calls back once, when the image has caught up."""
        self._opened.follower.on_caught_up = on_caught_up
        await self._opened.observer.run()

    def close(self, *, now_ms: int) -> None:
        """Close the copy of the metadata log."""
        self._opened.log.close(now_ms=now_ms)
