"""The table, a part of the fourth: share groups (KIP-932), the broker's configs and those of single groups.

``server_default`` names the broker config that a group's config falls back to. A group's value must lie between the broker's
limits, ``group.share.min.*`` and ``group.share.max.*``.
"""

from odradek.common.config.definitions import (
    BOOLEAN,
    CLUSTER_WIDE,
    INT,
    LIST,
    SHORT,
    STRING,
    AtLeast,
    Between,
    ConfigDefinition,
    DeadLetterTopic,
    Entries,
    OffsetReset,
    OneOf,
    broker_assignment_interval,
    broker_offload,
    broker_sessions,
    group_config,
    group_offload,
    one_replica,
)

_Config = ConfigDefinition


SHARE_GROUP_DEFINITIONS = (
    group_config("share.session.timeout.ms", 45000, 1, "When a silent member of a share group is removed."),
    group_config("share.heartbeat.interval.ms", 5000, 1, "How often a member of a share group sends a heartbeat."),
    group_config("share.assignment.interval.ms", 1000, 0, "The least time between two target assignments of a share group."),
    group_offload("share"),
    group_config("share.record.lock.duration.ms", 30000, 1000, "How long a member of a share group has a record to itself."),
    group_config("share.delivery.count.limit", 5, 2, "How often a record is given to a share group."),
    group_config(
        "share.partition.max.record.locks", 2000, 100, "The most records of a partition that members have to themselves."
    ),
    _Config(
        "share.auto.offset.reset",
        STRING,
        "latest",
        "Where a share group begins in a partition: earliest, latest, or by_duration: and a time before now, such as PT1H.",
        OffsetReset(),
        server_default="share.auto.offset.reset",
    ),
    _Config(
        "share.isolation.level",
        STRING,
        "read_uncommitted",
        "Which records a share group reads.",
        OneOf("read_committed", "read_uncommitted"),
        server_default="share.isolation.level",
    ),
    _Config(
        "errors.deadletterqueue.topic.name",
        STRING,
        "",
        "The dead-letter topic of a share group, for records that were rejected or delivered too often. Empty: none.",
        DeadLetterTopic(),
        server_default="errors.deadletterqueue.topic.name",
    ),
    _Config(
        "errors.deadletterqueue.copy.record.enable",
        BOOLEAN,
        False,
        "Whether the dead letters of a share group have the key and value of their records.",
        server_default="errors.deadletterqueue.copy.record.enable",
    ),
    _Config(
        "share.renew.acknowledge.enable",
        BOOLEAN,
        True,
        "Whether a member may keep a record for longer.",
        server_default="share.renew.acknowledge.enable",
    ),
)


def _between(name: str, default: int, low: int, high: int, doc: str) -> ConfigDefinition:
    return ConfigDefinition(f"group.share.{name}", INT, default, doc, Between(low, high))


SHARE_GROUPS = (
    *broker_sessions("share"),
    *broker_assignment_interval("share"),
    _between("max.size", 200, 1, 1000, "The most members in one share group."),
    _Config(
        "group.share.assignors",
        LIST,
        ("simple",),
        "The assignors of share groups.",
        Entries("simple", least=1),
        unused_reason="simple is the only one",
    ),
    broker_offload("share"),
    _Config(
        "group.share.initialize.retry.interval.ms",
        INT,
        30000,
        "When a share group asks again for the state of a partition, if the share coordinator has not answered.",
        AtLeast(1),
        "low",
        internal=True,
    ),
    _between(
        "record.lock.duration.ms",
        30000,
        1000,
        3600000,
        "How long a member of a share group has a record to itself. A group can have its own.",
    ),
    _between("min.record.lock.duration.ms", 15000, 1000, 30000, "The shortest lock duration you can set for one share group."),
    _between("max.record.lock.duration.ms", 60000, 30000, 3600000, "The longest lock duration you can set for one share group."),
    _between("delivery.count.limit", 5, 2, 10, "How often a record is given to a share group. A group can have its own."),
    _between("min.delivery.count.limit", 2, 2, 5, "The lowest delivery count limit you can set for one share group."),
    _between("max.delivery.count.limit", 10, 5, 25, "The highest delivery count limit you can set for one share group."),
    _between(
        "partition.max.record.locks",
        2000,
        100,
        10000,
        "The most records of a partition that members of a share group have to themselves. A group can have its own.",
    ),
    _between("min.partition.max.record.locks", 100, 100, 2000, "The fewest record locks you can set for one share group."),
    _between("max.partition.max.record.locks", 4000, 2000, 10000, "The most record locks you can set for one share group."),
    _Config(
        "errors.deadletterqueue.auto.create.topics.enable",
        BOOLEAN,
        False,
        "Whether the missing dead-letter topic of a share group is created.",
        update_mode=CLUSTER_WIDE,
    ),
    _Config(
        "errors.deadletterqueue.topic.name.prefix",
        STRING,
        "dlq.",
        "How the names of dead-letter topics begin. Empty: as you like.",
        update_mode=CLUSTER_WIDE,
    ),
    _Config("group.share.max.share.sessions", INT, 2000, "The most share sessions of the broker.", AtLeast(1)),
)

SHARE_COORDINATOR = (
    _Config(
        "share.coordinator.state.topic.num.partitions",
        INT,
        50,
        "The number of partitions of __share_group_state. It decides the partition that keeps a share partition's state, so you "
        "must not change it later.",
        AtLeast(1),
        "high",
    ),
    one_replica("share.coordinator.state.topic.replication.factor", SHORT, "3", "The replication factor of __share_group_state."),
    one_replica("share.coordinator.state.topic.min.isr", SHORT, "2", "min.insync.replicas of __share_group_state."),
    _Config(
        "share.coordinator.state.topic.segment.bytes",
        INT,
        104857600,
        "segment.bytes of __share_group_state.",
        AtLeast(1),
        "high",
    ),
    _Config(
        "share.coordinator.state.topic.compression.codec",
        INT,
        0,
        "The compression of __share_group_state: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        OneOf(0, 1, 2, 3, 4),
        "high",
    ),
    _Config(
        "share.coordinator.state.topic.prune.interval.ms",
        INT,
        300000,
        "How often records that are no longer needed are removed from __share_group_state.",
        AtLeast(1),
        "low",
        internal=True,
    ),
    _Config(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        INT,
        300000,
        "How old the last snapshot of a share partition may be before another one is written, so that older records can be "
        "removed.",
        AtLeast(1),
        "low",
        internal=True,
    ),
    _Config(
        "share.coordinator.snapshot.update.records.per.snapshot",
        INT,
        500,
        "How many updates of a share partition's state are written between two snapshots of it.",
        Between(0, 500),
    ),
    _Config(
        "share.coordinator.load.buffer.size",
        INT,
        5242880,
        "Bytes read at a time when the state of share partitions is loaded.",
        AtLeast(1),
        "high",
    ),
    _Config(
        "share.coordinator.write.timeout.ms",
        INT,
        5000,
        "How long a write to __share_group_state waits for the replicas.",
        AtLeast(1),
        "high",
    ),
)

SHARE_SECTIONS = (("Share groups", SHARE_COORDINATOR),)
