"""The configs of share groups as their share partitions need them: a group's own, or else the broker's (KIP-932).

Kafka's class is ShareGroupConfigProvider.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from odradek.broker.share.in_flight import ShareLimits
from odradek.common.config.dynamic import ResourceType
from odradek.controller.metadata.features import SHARE_VERSION
from odradek.controller.metadata.image import TOPIC_RESOURCE
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.log.log_lookup import LongLookup
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.broker.replica.inspections import Inspections
    from odradek.broker.replica.partition import Partition
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.controller.metadata.image import MetadataImage
    from odradek.storage.log.log_lookup import TimestampOffset

# The level of the feature from which on there are dead-letter queues (KIP-1191).
_WITH_DEAD_LETTERS: Final = 2
_DURATION: Final = re.compile(
    r"by_duration:P(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d{1,9})?)S)?)?", re.IGNORECASE
)
_MS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
_ONLY_LATER: Final = KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, "the new leader does not know its high watermark yet")


class ShareGroupConfigs:
    """The present configs of every share group. Loop thread only."""

    __slots__ = ("_config", "_image", "_inspections", "_now_ms")

    def __init__(self, config: BrokerConfig, image: MetadataImage, inspections: Inspections, now_ms: Callable[[], int]) -> None:
        self._config = config
        self._image = image
        self._inspections = inspections
        self._now_ms = now_ms

    def _own(self, group_id: str) -> Mapping[str, str]:
        return self._image.configs(ResourceType.GROUP, group_id)

    @property
    def _share_version(self) -> int:
        return self._image.features.get(SHARE_VERSION, 0)

    @property
    def is_on(self) -> bool:
        """Return whether there are share groups."""
        return self._share_version >= 1

    @property
    def most_sessions(self) -> int:
        """Return the limit of share sessions."""
        most: int = self._config["group.share.max.share.sessions"]
        return most

    def limits(self, group_id: str) -> ShareLimits:
        """Return the limits of a group."""
        config, own = self._config, self._own(group_id)
        return ShareLimits(
            delivery_count_limit=config.of_group(own, "share.delivery.count.limit"),
            partition_max_record_locks=config.of_group(own, "share.partition.max.record.locks"),
            record_lock_duration_ms=config.of_group(own, "share.record.lock.duration.ms"),
            may_renew=own.get("share.renew.acknowledge.enable", "true").lower() == "true",
            has_dead_letters=self._share_version >= _WITH_DEAD_LETTERS and bool(self.dead_letter_topic(group_id)),
        )

    def is_committed_only(self, group_id: str) -> bool:
        """Return whether a group reads committed records only."""
        return self._own(group_id).get("share.isolation.level", "").lower() == "read_committed"

    def dead_letter_topic(self, group_id: str) -> str:
        """Return the name of a group's dead-letter topic; "" if it has none."""
        return self._own(group_id).get("errors.deadletterqueue.topic.name", "")

    def copies_dead_letters(self, group_id: str) -> bool:
        """Return whether dead letters have the key and value of their records."""
        return self._own(group_id).get("errors.deadletterqueue.copy.record.enable", "").lower() == "true"

    def dead_letter_refusal(self, topic: str) -> str:
        """Return why dead letters may not be written to a topic; "" if they may."""
        prefix = self._config["errors.deadletterqueue.topic.name.prefix"]
        if not topic:
            return "the group has no dead-letter topic"
        if topic.startswith("__"):
            return f"{topic} begins with __, so it cannot be a dead-letter topic"
        if topic in self._image.topics:
            enabled = self._image.configs(TOPIC_RESOURCE, topic).get("errors.deadletterqueue.group.enable", "false")
            if enabled.lower() != "true":
                return f"{topic} is no dead-letter topic: set its config errors.deadletterqueue.group.enable to true"
        elif not self._config["errors.deadletterqueue.auto.create.topics.enable"]:
            return f"{topic} does not exist, and errors.deadletterqueue.auto.create.topics.enable is false"
        return (
            "" if topic.startswith(prefix) else f"{topic} does not begin with {prefix} (errors.deadletterqueue.topic.name.prefix)"
        )

    def max_message_bytes(self, topic: str) -> int:
        """Return the size of the largest batch of a topic."""
        return int(self._image.configs(TOPIC_RESOURCE, topic).get("max.message.bytes", self._config["message.max.bytes"]))

    def start_offset(self, group_id: str, partition: Partition) -> Reply[int | KafkaError]:
        """Find the offset at which a new group begins, by its ``share.auto.offset.reset``.

        The reply has OFFSET_NOT_AVAILABLE if a duration is given and no record is so new, and for the latest offset of a new
        leader that does not know its high watermark yet.
        """
        reply: Reply[int | KafkaError] = Reply()
        strategy = self._own(group_id).get("share.auto.offset.reset", "latest").lower()
        try:
            log = partition.require_leader_log()
            if strategy == "earliest":
                reply.complete(log.log_start_offset)
            elif strategy == "latest":
                reply.complete(_ONLY_LATER if partition.is_unsettled else partition.high_watermark)
            else:
                self._look_up(partition, self._now_ms() - duration_ms(strategy), 0, reply)
        except KafkaError as error:
            reply.complete(error)
        return reply

    def _look_up(self, partition: Partition, timestamp: int, from_offset: int, reply: Reply[int | KafkaError]) -> None:
        """Find the first record that is not older than ``timestamp``; a long search runs in a thread."""
        log = partition.require_leader_log()

        def searched(found: TimestampOffset | KafkaError | None) -> None:
            if found is None:
                try:
                    self._look_up(partition, timestamp, lookup.next_offset, reply)
                except KafkaError as error:
                    reply.complete(error)
            else:
                reply.complete(found if isinstance(found, KafkaError) else found.offset)

        try:
            found = log.offset_for_timestamp(timestamp, from_offset)
        except LongLookup as long_lookup:
            lookup = long_lookup
            self._inspections.run(lookup.run, searched)
            return
        except OSError as error:
            raise log.storage_error(error) from error
        if found is None or found.offset >= partition.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, f"no record is as new as {timestamp}")
        reply.complete(found.offset)


def duration_ms(strategy: str) -> int:
    """Return the duration of ``by_duration:PnDTnHnMn.nS``. KafkaError: INVALID_CONFIG."""
    match = _DURATION.fullmatch(strategy)
    if match is None or not any(match.groups()):
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"share.auto.offset.reset is {strategy}, which has no duration")
    return int(sum(float(text) * _MS[unit] for unit, text in match.groupdict().items() if text))
