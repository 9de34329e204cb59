"""The cluster's metadata as a broker has them, wherever its controller is.

A broker that is its own controller has them from ``metadata.controller``, one among others from ``cluster.followed_metadata``.
"""

from collections.abc import Iterable
from typing import Protocol
from uuid import UUID

from odradek.broker.context import RequestContext
from odradek.broker.metadata.decisions import Take, TopicResult
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.publishing import MetadataPublisher, PublishingOrder
from odradek.broker.metadata.topic import Topic
from odradek.protocol.errors import KafkaError
from odradek.storage.log_config import LogConfig
from odradek.timing.reply import Reply


class ClusterMetadata(Protocol):
    """What is committed, and what a broker itself asks of its controller. ``image`` is to be read, never written."""

    image: MetadataImage

    @property
    def log_end_offset(self) -> int:
        """The offset after the last metadata record in the image; one less is the epoch of the finalized features."""

    @property
    def kraft_version(self) -> int:
        """``kraft.version``: 0 unless the metadata log tells of the voters."""

    def log_config_for(self, topic_name: str) -> LogConfig:
        """What the logs of a topic act on; for one that is not there, the broker's defaults."""

    def subscribe(self, publisher: MetadataPublisher, order: PublishingOrder) -> None:
        """Tell ``publisher`` of every later change, when it is committed and in the image."""

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

    def record_directories(self, places: Iterable[tuple[UUID, int, UUID]]) -> None:
        """At start, record where partitions lie: (topic id, partition, directory id). Raises KafkaError if that fails."""

    def record_move(self, topic_id: UUID, partition: int, directory_id: UUID) -> Reply[KafkaError | None]:
        """Record where a partition lies now."""

    def close(self) -> None:
        """Close the metadata log. Raises KafkaError, OSError."""
