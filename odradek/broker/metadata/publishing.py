"""Who keeps in step with the metadata, and in which order they are told of a change (Kafka: MetadataPublisher).

The order is that of Kafka's BrokerMetadataPublisher: partitions come first, so that a coordinator finds the partitions of its
topic, and configs come last, when all that they may apply to is there.
"""

from enum import IntEnum
from typing import Protocol

from odradek.broker.logging import log
from odradek.broker.metadata.delta import MetadataDelta
from odradek.broker.metadata.image import MetadataImage


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
