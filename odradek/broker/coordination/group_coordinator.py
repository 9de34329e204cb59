"""The group coordinator of this broker: a runtime on ``__consumer_offsets``, and its links to topics and transactions."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final
from uuid import UUID

from odradek.broker.coordination.coordinator_host import CoordinatorHost
from odradek.broker.coordination.services import CoordinatorTopic
from odradek.common.config.checks import third_party_assignors
from odradek.common.logging import log
from odradek.controller.metadata.topic import CONSUMER_OFFSETS_TOPIC
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.directories.checkpoints import new_uuid_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.broker.coordination.services import CoordinatorServices
    from odradek.controller.metadata.delta import MetadataDelta
    from odradek.controller.metadata.image import MetadataImage
    from odradek.coordinator.group.assignor.spec import Assign
    from odradek.coordinator.group.config import GroupConfig
    from odradek.coordinator.group.consumer.groups import ConsumerGroupConfig, ConsumerGroupServices
    from odradek.coordinator.group.group_shard import GroupShard
    from odradek.coordinator.runtime.environment import ShardContext
    from odradek.coordinator.runtime.result import CoordinatorRecord, EndTxnMarker
    from odradek.timing.reply import Reply


_MODULES: Final = (
    "odradek.coordinator.runtime.runtime",
    "odradek.coordinator.group.classic.groups",
    "odradek.coordinator.group.classic.join",
    "odradek.coordinator.group.group_shard",
)
_MS_PER_MINUTE: Final = 60_000
_GROUP_RESOURCE: Final = 32
# The delay before a shard that is still loading is asked again to delete the offsets of a deleted topic.
_LOADING_BACKOFF_MS: Final = 1_000
# The bits that mark a UUID as random (RFC 9562, version 4), and the mask of their places.
_UUID_4: Final = 0x4000_8000_0000_0000_0000
_UUID_MARKS: Final = 0xF000_C000_0000_0000_0000


class GroupCoordinator(CoordinatorHost["GroupShard"]):
    """The group coordinator of this broker. See ``CoordinatorHost``."""

    def __init__(self, services: CoordinatorServices) -> None:
        config = services.config
        about = CoordinatorTopic(
            "group",
            CONSUMER_OFFSETS_TOPIC,
            _MODULES,
            load_buffer_bytes=config["offsets.load.buffer.size"],
            write_timeout_ms=config["offsets.commit.timeout.ms"],
            compression=config["offsets.topic.compression.codec"],
        )
        super().__init__(services, about)
        self._group_configs: GroupConfig | None = None
        # For groups with overrides. The name "" has the config of all others.
        self._consumer_configs: dict[str, ConsumerGroupConfig] = {}

    def write_marker(self, partition: int, marker: EndTxnMarker) -> Reply[KafkaError | None] | None:
        """End a transaction on a partition of ``__consumer_offsets``. Its pending offsets are committed or dropped.

        KafkaError: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, and those of
        ``CoordinatorRuntime.write``.
        """
        from odradek.coordinator.group.offset_commit import end_transaction

        leader = self._services.partitions.require(CONSUMER_OFFSETS_TOPIC, partition).leader
        reply = self.runtime.write(partition, lambda _: end_transaction(marker))
        if not reply.done:
            # With followers, the marker counts only after it is replicated.
            return reply if leader is not None and leader.followers is not None else None
        if reply.response is not None:
            raise reply.response
        return None

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Delete the offsets of deleted topics, and drop cached group configs after a change."""
        super().publish(delta, image)
        if delta.configs:
            self._group_configs = None
            self._consumer_configs.clear()
        if self._runtime is not None and (delta.topics or delta.deleted_topics):
            self._note_topics(delta)
        if self._runtime is not None and delta.deleted_topics:
            deleted = {topic.name: topic.topic_id for topic in delta.deleted_topics}
            for partition in self._runtime.partitions():
                self._delete_offsets(partition, deleted)

    def _note_topics(self, delta: MetadataDelta) -> None:
        """Have consumer groups look at changed topics again. A shard that is not loaded yet will look when it is."""
        names = [each.topic.name for each in delta.topics.values()] + [topic.name for topic in delta.deleted_topics]
        has_new = any(each.is_new for each in delta.topics.values())
        for partition in self.runtime.partitions():
            with suppress(KafkaError):
                self.runtime.read(partition, lambda shard, _: shard.note_topics(names, has_new=has_new))

    def _delete_offsets(self, partition: int, deleted: Mapping[str, UUID]) -> None:
        from odradek.coordinator.group.offset_deletion import delete_offsets_of_topics

        def finished(outcome: KafkaError | None) -> None:
            if outcome is None or outcome.code == ErrorCode.NOT_COORDINATOR:
                return
            if outcome.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                self._services.timer.call_after(_LOADING_BACKOFF_MS, lambda: self._delete_offsets(partition, deleted))
            else:
                log.error("cannot delete the offsets of deleted topics", outcome, topics=len(deleted), partition=partition)

        reply = self.runtime.write(partition, lambda shard: delete_offsets_of_topics(shard.offsets, deleted))
        reply.when_done(finished)

    def _decoder(self) -> Callable[[bytes, bytes | None], CoordinatorRecord | None]:
        from odradek.coordinator.runtime.result import decode_group_record

        return decode_group_record

    def _make_shard(self, context: ShardContext) -> GroupShard:
        from odradek.coordinator.group.group_shard import GroupShard
        from odradek.coordinator.group.offsets import OffsetConfig

        config = self._services.config
        return GroupShard(
            context,
            config=self._group_config,
            reports=log,
            new_id=self._new_id,
            offset_config=OffsetConfig(
                offset_metadata_max_bytes=config["offset.metadata.max.bytes"],
                offsets_retention_ms=config["offsets.retention.minutes"] * _MS_PER_MINUTE,
                offsets_retention_check_interval_ms=config["offsets.retention.check.interval.ms"],
            ),
            consumer_services=self._consumer_services,
        )

    def _consumer_services(self) -> ConsumerGroupServices:
        from odradek.broker.coordination.group_topics import ImageTopics
        from odradek.coordinator.group.consumer.groups import ConsumerGroupServices

        return ConsumerGroupServices(
            topics=ImageTopics(self._services),
            config_of=self._consumer_config_of,
            run_beside=self._services.run_beside,
            assignors=self._assignors(),
            new_id=self._new_consumer_id,
        )

    def _assignors(self) -> Mapping[str, Assign]:
        from odradek.coordinator.group.assignor.builtin import ASSIGNORS
        from odradek.coordinator.group.assignor.spec import checked

        names = self._services.config["group.consumer.assignors"]
        others = third_party_assignors(names)
        return {name: ASSIGNORS[name] if name in ASSIGNORS else checked(others[name]) for name in names}

    def _consumer_config_of(self, group_id: str) -> ConsumerGroupConfig:
        known = self._consumer_configs.get(group_id)
        if known is None:
            overrides = self._services.controller.image.configs(_GROUP_RESOURCE, group_id)
            if overrides:
                known = self._consumer_configs[group_id] = self._read_consumer_config(overrides)
            else:
                known = self._consumer_configs.get("") or self._consumer_configs.setdefault("", self._read_consumer_config({}))
        return known

    def _read_consumer_config(self, overrides: Mapping[str, str]) -> ConsumerGroupConfig:
        from odradek.coordinator.group.config import MigrationPolicy
        from odradek.coordinator.group.consumer.groups import ConsumerGroupConfig

        config = self._services.config

        def own(name: str, default: int) -> int:
            return int(overrides.get(name, default))

        return ConsumerGroupConfig(
            session_timeout_ms=own("consumer.session.timeout.ms", config["group.consumer.session.timeout.ms"]),
            heartbeat_interval_ms=own("consumer.heartbeat.interval.ms", config["group.consumer.heartbeat.interval.ms"]),
            assignment_interval_ms=own("consumer.assignment.interval.ms", config["group.consumer.assignment.interval.ms"]),
            regex_refresh_interval_ms=config["group.consumer.regex.refresh.interval.ms"],
            max_size=config["group.consumer.max.size"],
            migration_policy=MigrationPolicy(config["group.consumer.migration.policy"].lower()),
        )

    def _group_config(self) -> GroupConfig:
        if self._group_configs is None:
            self._group_configs = self._read_group_config()
        return self._group_configs

    def _read_group_config(self) -> GroupConfig:
        from odradek.coordinator.group.config import GroupConfig

        config = self._services.config
        return GroupConfig(
            group_min_session_timeout_ms=config["group.min.session.timeout.ms"],
            group_max_session_timeout_ms=config["group.max.session.timeout.ms"],
            group_initial_rebalance_delay_ms=config["group.initial.rebalance.delay.ms"],
            group_max_size=config["group.max.size"],
        )

    def _new_id(self) -> str:
        digits = f"{self._uuid_bits():032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def _new_consumer_id(self) -> str:
        """Return a new member id for a consumer group: a UUID in Kafka's text form."""
        return new_uuid_text(lambda: UUID(int=self._uuid_bits()))

    def _uuid_bits(self) -> int:
        # A version 4 UUID as from uuid4, in half the time.
        return self._services.random.getrandbits(128) & ~_UUID_MARKS | _UUID_4
