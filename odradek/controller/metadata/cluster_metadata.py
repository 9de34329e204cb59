"""The cluster's metadata as a broker uses it, wherever its controller is.

A single broker gets it from ``cluster.lone_controller``, a broker among others from ``cluster.followed_metadata``.

Publishers carry changes over (Kafka: MetadataPublisher). They are called in the order of Kafka's BrokerMetadataPublisher.
Partitions come first, so that a coordinator finds the partitions of its topic. Configs come last, when everything that they may
apply to exists.

``ProducerIdManager`` (as in Kafka) gives out producer ids from blocks that the controller hands out.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Protocol
from uuid import UUID

from odradek.common.context import RequestContext
from odradek.common.logging import log
from odradek.controller.metadata.decisions import NewTopic, Take, TopicResult
from odradek.controller.metadata.delta import MetadataDelta
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.metadata.topic import Topic
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.log.log_config import LogConfig
from odradek.timing.reply import Reply


class PublishingOrder(IntEnum):
    """The place of a publisher in the order. Publishers with the same place are called in the order of subscription."""

    PARTITIONS = 0
    COORDINATORS = 1
    BROKER_CONFIGS = 2
    # A log's config derives from the broker's config, which must be in force by then.
    TOPIC_CONFIGS = 3
    ACLS = 4
    QUOTAS = 4
    # Brokers that follow this node's log. A change is in force here before they hear of it.
    OBSERVERS = 5


class MetadataPublisher(Protocol):
    """Carries changes of the metadata over into another part of the broker."""

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply ``delta``, which is committed and contained in ``image``. Must not raise."""


class Publishers:
    """The publishers of one controller."""

    def __init__(self) -> None:
        self._publishers: list[tuple[PublishingOrder, MetadataPublisher]] = []

    def add(self, publisher: MetadataPublisher, order: PublishingOrder) -> None:
        """Call ``publisher`` for every later change."""
        self._publishers.append((order, publisher))
        self._publishers.sort(key=lambda each: each[0])

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Call all publishers. If one fails, the others are still called, as the change is committed."""
        for _, publisher in self._publishers:
            try:
                publisher.publish(delta, image)
            except Exception as error:  # noqa: BLE001  the records are in the log already
                log.error("cannot apply a change of the metadata", error, publisher=type(publisher).__name__)


class CommittedMetadata(Protocol):
    """The committed metadata. ``image`` is read-only."""

    image: MetadataImage

    @property
    def log_end_offset(self) -> int:
        """Return the offset after the last metadata record in the image. One less is the epoch of the finalized features."""

    @property
    def kraft_version(self) -> int:
        """Return ``kraft.version``: 0 unless the metadata log lists the voters."""

    def subscribe(self, publisher: MetadataPublisher, order: PublishingOrder) -> None:
        """Call ``publisher`` for every later change, when it is committed and in the image."""


class ClusterMetadata(CommittedMetadata, Protocol):
    """The committed metadata on a broker, and the broker's own requests to its controller."""

    def log_config_for(self, topic_name: str) -> LogConfig:
        """Return the configs of a topic's logs; for a missing topic, the broker's defaults."""

    def auto_create(
        self,
        names: Iterable[str | NewTopic],
        context: RequestContext | None = None,
        take: Take | None = None,
        configs: Sequence[tuple[str, str]] = (),
    ) -> Reply[list[TopicResult] | KafkaError]:
        """Create the missing topics of ``names`` with the broker's defaults, or with the coordinators' configs.

        A NewTopic is created as it says.

        ``context`` is the request that a client would have sent for it, None if the broker itself asks. ``take`` charges the new
        topics to the client's quota, if the controller is here. Another controller does that itself. ``configs`` are those of new
        topics that are not internal.
        """

    def ensure_internal_topic(self, name: str) -> Reply[Topic | KafkaError]:
        """Return the internal topic ``name``, created if it is missing."""

    def next_producer_id(self) -> int:
        """Return a new producer id. KafkaError: COORDINATOR_LOAD_IN_PROGRESS, or the controller's error."""

    def record_move(self, topic_id: UUID, partition: int, directory_id: UUID) -> Reply[KafkaError | None]:
        """Record the new directory of a partition."""

    def close(self) -> None:
        """Close the metadata log. Raises KafkaError, OSError."""


class ProducerIdManager:
    """Gives each producer id once. ``request_block`` asks the controller for the next block."""

    def __init__(self, request_block: Callable[[], Reply[range | KafkaError]]) -> None:
        self._request_block = request_block
        self._block: Iterator[int] = iter(range(0))
        self._requested: Reply[range | KafkaError] | None = None

    def prepare(self) -> None:
        """Ask for the first block, so that the first producer need not ask twice."""
        self._requested = self._requested or self._request_block()

    def next_producer_id(self) -> int:
        """Return a producer id never given out before.

        KafkaError: COORDINATOR_LOAD_IN_PROGRESS while the next block is on its way, or the controller's error.
        """
        producer_id = next(self._block, None)
        if producer_id is not None:
            return producer_id
        requested = self._requested or self._request_block()
        if not requested.done:
            self._requested = requested
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "waiting for the next block of producer ids")
        self._requested = None
        block = requested.response
        if isinstance(block, KafkaError):
            raise block
        self._block = iter(block)
        return next(self._block)
