"""The metadata of a broker whose controller is elsewhere: their source, the link to the controller, and requests for changes.

``MetadataSource`` has the image and the link. Usually the controller is in another process (``ObservedMetadata``). A broker in
the controller's own process has another source (``start.cluster_start.OwnController``). The controller makes all changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from odradek.common.context import OwnSession, RequestContext
from odradek.controller.metadata.auto_topic_creation import replicated_internal_topic
from odradek.controller.metadata.cluster_metadata import MetadataPublisher, ProducerIdManager, Publishers, PublishingOrder
from odradek.controller.metadata.decisions import NewTopic, Take, TopicResult
from odradek.controller.metadata.image import TOPIC_RESOURCE, MetadataImage
from odradek.controller.metadata.snapshot_generator import SnapshotGenerator
from odradek.controller.metadata.topic import INTERNAL_TOPICS, Topic
from odradek.controller.quorum.broker_lifecycle import Controller
from odradek.controller.quorum.controller_channel import ChannelConfig, ControllerChannel
from odradek.controller.quorum.start import open_observer
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError, error_of
from odradek.protocol.message_types.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.timing.reply import Reply, replied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

    from odradek.broker.replica.controller_requests import DirectoryAssignments
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.controller.quorum.fetch_messages import ObserverIdentity
    from odradek.controller.quorum.forwarding import ForwardingGate
    from odradek.controller.quorum.leader_discovery import QuorumNode
    from odradek.controller.quorum.observer import ObserverConfig, ObserverHost
    from odradek.storage.log.log_config import LogConfig
    from odradek.timing.background import Background
    from odradek.timing.clock import Clock


class ControllerLink(Controller, Protocol):
    """The link to the active controller."""

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


_CREATE_VERSION: Final = 7
_CREATE_TIMEOUT_MS: Final = 30_000
# The address of requests that the broker makes itself.
_HERE: Final = ("127.0.0.1", 0)


class FollowedMetadata:
    """The ClusterMetadata of a broker whose controller is elsewhere. Loop thread only."""

    def __init__(
        self,
        source: MetadataSource,
        *,
        config: BrokerConfig,
        clock: Clock,
        forwarding: ForwardingGate,
        request_block: Callable[[], Reply[range | KafkaError]],
        assignments: DirectoryAssignments,
    ) -> None:
        self.image: MetadataImage = source.image
        self._producer_ids = ProducerIdManager(request_block)
        self.next_producer_id = self._producer_ids.next_producer_id
        self._source = source
        self._config = config
        self._clock = clock
        self._forwarding = forwarding
        self._assignments = assignments

    @property
    def log_end_offset(self) -> int:
        """The end offset of this broker's copy of the metadata log."""
        return self._source.applied_offset

    @property
    def kraft_version(self) -> int:
        """Return the finalized ``kraft.version``."""
        return self._source.kraft_version

    def log_config_for(self, topic_name: str) -> LogConfig:
        """Return the log config of a topic: its own configs, and the broker's as defaults."""
        return self._config.log_config(self.image.configs(TOPIC_RESOURCE, topic_name))

    def subscribe(self, publisher: MetadataPublisher, order: PublishingOrder) -> None:
        """Call ``publisher`` after each change of the image."""
        self._source.subscribe(publisher, order)

    def auto_create(
        self,
        names: Iterable[str | NewTopic],
        context: RequestContext | None = None,
        take: Take | None = None,  # noqa: ARG002
        configs: Sequence[tuple[str, str]] = (),
    ) -> Reply[list[TopicResult] | KafkaError]:
        """Ask the controller to create topics. They appear in the image some time later."""
        topics = [name if isinstance(name, NewTopic) else self._new_topic(name, configs) for name in dict.fromkeys(names)]
        wanted = [topic for topic in topics if topic.name not in self.image.topics]
        if not wanted:
            return replied([])
        request = CreateTopicsRequest(topics=[_creatable(topic) for topic in wanted], timeout_ms=_CREATE_TIMEOUT_MS)
        if context is None:
            context = RequestContext(ApiKey.CREATE_TOPICS, _CREATE_VERSION, 0, "auto-topic-creation", OwnSession("", _HERE))
        return self._forwarding.forward(context, request).then(_results)

    def ensure_internal_topic(self, name: str) -> Reply[Topic | KafkaError]:
        """Ask for the creation of an internal topic. KafkaError: COORDINATOR_NOT_AVAILABLE until the image has it."""
        reply: Reply[Topic | KafkaError] = Reply()

        def answer(outcome: list[TopicResult] | KafkaError) -> None:
            found = self.image.topics.get(name)
            refusal = outcome if isinstance(outcome, KafkaError) else next((each.error for each in outcome if each.error), None)
            reply.complete(found or refusal or KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{name} is being created"))

        self.auto_create([name]).when_done(answer)
        return reply

    def prepare(self) -> None:
        """Fetch producer ids for the first clients in advance. The broker must be registered."""
        self._producer_ids.prepare()

    def record_move(self, topic_id: UUID, partition: int, directory_id: UUID) -> Reply[KafkaError | None]:
        """Report a move to the controller until it is acknowledged. The Reply is complete at once."""
        self._assignments.assign([(topic_id, partition, directory_id)])
        return replied(None)

    def close(self) -> None:
        """Close the copy of the metadata log."""
        self._source.close(now_ms=self._clock.now_ms())

    def _new_topic(self, name: str, configs: Sequence[tuple[str, str]] = ()) -> NewTopic:
        if name in INTERNAL_TOPICS:
            return replicated_internal_topic(name, self._config)
        return NewTopic(name, self._config["num.partitions"], self._config["default.replication.factor"], (), configs)


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partition_count,
        replication_factor=topic.replication_factor,
        configs=[CreatableTopicConfig(name, value) for name, value in topic.configs],
    )


def _results(response: object) -> list[TopicResult] | KafkaError:
    if not isinstance(response, CreateTopicsResponse):
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "cannot read the controller's answer")
    return [TopicResult(topic.name, topic.topic_id, topic.num_partitions, _error_of(topic)) for topic in response.topics]


def _error_of(topic: CreatableTopicResult) -> KafkaError | None:
    """Return the error of a result; None if another broker has created the topic first."""
    if topic.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        return None
    return KafkaError(error_of(topic.error_code), topic.error_message or f"the controller did not create {topic.name}")
