"""The cluster's metadata as a broker has them, wherever its controller is.

A broker alone has them from ``cluster.lone_controller``, one among others from ``cluster.followed_metadata``.

Publishers keep in step with the metadata (Kafka: MetadataPublisher). The order in which they are told of a change is that of
Kafka's BrokerMetadataPublisher: partitions come first, so that a coordinator finds the partitions of its topic, and configs come
last, when all that they may apply to is there.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Protocol
from uuid import UUID

from odradek.common.context import RequestContext
from odradek.common.logging import log
from odradek.controller.metadata.decisions import Take, TopicResult
from odradek.controller.metadata.delta import MetadataDelta
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.metadata.topic import Topic
from odradek.protocol.errors import KafkaError
from odradek.storage.log.log_config import LogConfig
from odradek.timing.reply import Reply


class PublishingOrder(IntEnum):
    """The place of a publisher among the others; those of one place are told in the order in which they subscribed."""

    PARTITIONS = 0
    COORDINATORS = 1
    BROKER_CONFIGS = 2
    # The config of a log is made of the broker's, which must be in force by then.
    TOPIC_CONFIGS = 3
    ACLS = 4
    QUOTAS = 4
    # Brokers that follow this node's log; a change holds here by the time that they have heard of it.
    OBSERVERS = 5


class MetadataPublisher(Protocol):
    """Carries changes of the metadata over into what it looks after."""

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """``delta`` is committed, and ``image`` has it. Must not raise."""


class Publishers:
    """The publishers of one controller."""

    def __init__(self) -> None:
        self._publishers: list[tuple[PublishingOrder, MetadataPublisher]] = []

    def add(self, publisher: MetadataPublisher, order: PublishingOrder) -> None:
        """Tell ``publisher`` of every later change."""
        self._publishers.append((order, publisher))
        self._publishers.sort(key=lambda each: each[0])

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Tell all of them. The change is committed: one that fails does not keep it from the others."""
        for _, publisher in self._publishers:
            try:
                publisher.publish(delta, image)
            except Exception as error:  # noqa: BLE001  whatever it is, the records are in the log
                log.error("a change of the metadata could not be carried over", error, publisher=type(publisher).__name__)


class CommittedMetadata(Protocol):
    """The committed metadata. ``image`` is to be read, never written."""

    image: MetadataImage

    @property
    def log_end_offset(self) -> int:
        """The offset after the last metadata record in the image; one less is the epoch of the finalized features."""

    @property
    def kraft_version(self) -> int:
        """``kraft.version``: 0 unless the metadata log tells of the voters."""

    def subscribe(self, publisher: MetadataPublisher, order: PublishingOrder) -> None:
        """Tell ``publisher`` of every later change, when it is committed and in the image."""


class ClusterMetadata(CommittedMetadata, Protocol):
    """The same on a broker, and what a broker itself asks of its controller."""

    def log_config_for(self, topic_name: str) -> LogConfig:
        """The configs of a topic's logs; for a topic that is not there, the broker's defaults."""

    def auto_create(
        self, names: Iterable[str], context: RequestContext | None = None, take: Take | None = None
    ) -> Reply[list[TopicResult] | KafkaError]:
        """Create those of ``names`` that are not there, with the broker's defaults, or as the coordinators want their own.

        ``context`` is the request that a client would have sent for it, None where the broker itself asks. ``take`` takes what
        is created of the client's quota, if the controller is here; another controller does that by itself.
        """

    def ensure_internal_topic(self, name: str) -> Reply[Topic | KafkaError]:
        """The internal topic ``name``, created if it is not there."""

    def next_producer_id(self) -> int:
        """A producer id that nobody has had. KafkaError: COORDINATOR_LOAD_IN_PROGRESS, or what the controller answered."""

    def record_move(self, topic_id: UUID, partition: int, directory_id: UUID) -> Reply[KafkaError | None]:
        """Record where a partition lies now."""

    def close(self) -> None:
        """Close the metadata log. Raises KafkaError, OSError."""
