"""The maker of the group coordinator's shards, by the broker's configs. Imported with the first group."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import UUID

from odradek.broker.coordination.group_topics import ImageTopics
from odradek.common.config.checks import third_party_assignors
from odradek.common.config.definitions import parse_list
from odradek.common.config.dynamic import ResourceType
from odradek.common.logging import log
from odradek.coordinator.group.assignor.builtin import ASSIGNORS
from odradek.coordinator.group.assignor.spec import checked
from odradek.coordinator.group.config import GroupConfig, MigrationPolicy
from odradek.coordinator.group.consumer.groups import ConsumerGroupConfig, ConsumerGroupServices
from odradek.coordinator.group.group_shard import GroupShard
from odradek.coordinator.group.offset_commit import end_transaction
from odradek.coordinator.group.offset_deletion import delete_offsets_of_topics
from odradek.coordinator.group.offsets import OffsetConfig
from odradek.coordinator.group.share.groups import ShareGroupConfig, ShareGroupServices
from odradek.coordinator.group.streams.groups import StreamsGroupConfig, StreamsGroupServices
from odradek.coordinator.runtime.result import decode_group_record
from odradek.protocol.texts import new_uuid_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.broker.coordination.services import CoordinatorServices
    from odradek.coordinator.group.assignor.spec import Assign
    from odradek.coordinator.runtime.environment import ShardContext

ConfigT = TypeVar("ConfigT")

_MS_PER_MINUTE: Final = 60_000
# The bits that mark a UUID as random (RFC 9562, version 4), and the mask of their places.
_UUID_4: Final = 0x4000_8000_0000_0000_0000
_UUID_MARKS: Final = 0xF000_C000_0000_0000_0000


class GroupShards:
    """Makes the shards of ``__consumer_offsets``. It also has the operations on shards that no handler begins."""

    def __init__(self, services: CoordinatorServices) -> None:
        self.decode = decode_group_record
        self.end_transaction = end_transaction
        self.delete_offsets_of_topics = delete_offsets_of_topics
        self._services = services
        self._group_configs: GroupConfig | None = None
        # For groups with overrides. The name "" has the config of all others.
        self._consumer_configs: dict[str, ConsumerGroupConfig] = {}
        self._share_configs: dict[str, ShareGroupConfig] = {}
        self._streams_configs: dict[str, StreamsGroupConfig] = {}

    def forget_configs(self) -> None:
        """Read the configs again when they are next needed: they have changed."""
        self._group_configs = None
        self._consumer_configs.clear()
        self._share_configs.clear()
        self._streams_configs.clear()

    def make(self, context: ShardContext) -> GroupShard:
        """Create an empty shard."""
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
            share_services=lambda: ShareGroupServices(
                topics=ImageTopics(self._services),
                config_of=partial(self._config_of, self._share_configs, self._read_share_config),
            ),
            streams_services=lambda: StreamsGroupServices(
                topics=ImageTopics(self._services),
                config_of=partial(self._config_of, self._streams_configs, self._read_streams_config),
            ),
        )

    def _consumer_services(self) -> ConsumerGroupServices:
        return ConsumerGroupServices(
            topics=ImageTopics(self._services),
            config_of=partial(self._config_of, self._consumer_configs, self._read_consumer_config),
            run_beside=self._services.run_beside,
            assignors=self._assignors(),
            new_id=self._new_consumer_id,
        )

    def _assignors(self) -> Mapping[str, Assign]:
        names = self._services.config["group.consumer.assignors"]
        others = third_party_assignors(names)
        return {name: ASSIGNORS[name] if name in ASSIGNORS else checked(others[name]) for name in names}

    def _config_of(self, known: dict[str, ConfigT], read: Callable[[Mapping[str, str]], ConfigT], group_id: str) -> ConfigT:
        found = known.get(group_id)
        if found is None:
            overrides = self._services.controller.image.configs(ResourceType.GROUP, group_id)
            key = group_id if overrides else ""
            found = known.get(key)
            if found is None:
                found = known[key] = read(overrides)
        return found

    def _read_consumer_config(self, overrides: Mapping[str, str]) -> ConsumerGroupConfig:
        config = self._services.config
        own = partial(config.of_group, overrides)
        return ConsumerGroupConfig(
            session_timeout_ms=own("consumer.session.timeout.ms"),
            heartbeat_interval_ms=own("consumer.heartbeat.interval.ms"),
            assignment_interval_ms=own("consumer.assignment.interval.ms"),
            regex_refresh_interval_ms=config["group.consumer.regex.refresh.interval.ms"],
            max_size=config["group.consumer.max.size"],
            migration_policy=MigrationPolicy(config["group.consumer.migration.policy"].lower()),
        )

    def _read_share_config(self, overrides: Mapping[str, str]) -> ShareGroupConfig:
        config = self._services.config
        own = partial(config.of_group, overrides)
        return ShareGroupConfig(
            session_timeout_ms=own("share.session.timeout.ms"),
            heartbeat_interval_ms=own("share.heartbeat.interval.ms"),
            assignment_interval_ms=own("share.assignment.interval.ms"),
            initialize_retry_interval_ms=config["group.share.initialize.retry.interval.ms"],
            max_size=config["group.share.max.size"],
        )

    def _read_streams_config(self, overrides: Mapping[str, str]) -> StreamsGroupConfig:
        config = self._services.config
        own = partial(config.of_group, overrides)
        tags = overrides.get("streams.rack.aware.assignment.tags")
        return StreamsGroupConfig(
            session_timeout_ms=own("streams.session.timeout.ms"),
            heartbeat_interval_ms=own("streams.heartbeat.interval.ms"),
            assignment_interval_ms=own("streams.assignment.interval.ms"),
            initial_rebalance_delay_ms=own("streams.initial.rebalance.delay.ms"),
            num_standby_replicas=own("streams.num.standby.replicas"),
            rack_aware_assignment_tags=tuple(
                config["group.streams.rack.aware.assignment.tags"] if tags is None else parse_list(tags)
            ),
            task_offset_interval_ms=own("streams.task.offset.interval.ms"),
            acceptable_recovery_lag=own("streams.acceptable.recovery.lag"),
            assignor_name=overrides.get("streams.assignor.name"),
            max_size=config["group.streams.max.size"],
        )

    def _group_config(self) -> GroupConfig:
        if self._group_configs is None:
            config = self._services.config
            self._group_configs = GroupConfig(
                group_min_session_timeout_ms=config["group.min.session.timeout.ms"],
                group_max_session_timeout_ms=config["group.max.session.timeout.ms"],
                group_initial_rebalance_delay_ms=config["group.initial.rebalance.delay.ms"],
                group_max_size=config["group.max.size"],
            )
        return self._group_configs

    def _new_id(self) -> str:
        digits = f"{self._uuid_bits():032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def _new_consumer_id(self) -> str:
        """Return a new member id for a consumer group: a UUID in Kafka's text form."""
        return new_uuid_text(lambda: UUID(int=self._uuid_bits()))

    def _uuid_bits(self) -> int:
        # A version 4 UUID as from uuid4, in half the time.
        return self._services.random.getrandbits(128) & ~_UUID_MARKS | _UUID_4
