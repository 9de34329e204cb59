"""The table, the broker's configs of share groups (KIP-932)."""

from odradek.common.config.definitions import INT, SHORT, AtLeast, Between, ConfigDefinition, OneOf
from odradek.common.config.table_server import ONE_BROKER

_Config = ConfigDefinition

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
    _Config(
        "share.coordinator.state.topic.replication.factor",
        SHORT,
        1,
        "The replication factor of __share_group_state. A broker alone uses 1.",
        AtLeast(1),
        "high",
        kafka_default="3",
        difference=ONE_BROKER,
    ),
    _Config(
        "share.coordinator.state.topic.min.isr",
        SHORT,
        1,
        "min.insync.replicas of __share_group_state. A broker alone uses 1.",
        AtLeast(1),
        "high",
        kafka_default="2",
        difference=ONE_BROKER,
    ),
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
