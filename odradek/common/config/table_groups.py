"""The table, fourth part: the broker's configs of groups and offsets, quotas and telemetry.

It also has the configs of single groups and of subscriptions to client metrics (KIP-714). Groups have configs for the protocols
of KIP-848, KIP-932 (``table_share_groups``) and KIP-1071 (``table_streams_groups``). ``server_default`` names the broker config
that a group's config falls back to.
"""

from odradek.common.config.definitions import (
    INT,
    LIST,
    LONG,
    MAX_INT,
    SHORT,
    STRING,
    AtLeast,
    ConfigDefinition,
    Entries,
    OneOf,
    broker_assignment_interval,
    broker_offload,
    broker_sessions,
    group_config,
    group_offload,
    one_replica,
)
from odradek.common.config.table_share_groups import SHARE_GROUP_DEFINITIONS, SHARE_GROUPS
from odradek.common.config.table_streams_groups import STREAMS_GROUP_DEFINITIONS, STREAMS_GROUPS

GROUP_DEFINITIONS = (
    group_config("consumer.session.timeout.ms", 45000, 1, "When a silent member of the group is removed."),
    group_config("consumer.heartbeat.interval.ms", 5000, 1, "How often a member of the group sends a heartbeat."),
    group_config("consumer.assignment.interval.ms", 1000, 0, "The least time between two target assignments of the group."),
    group_offload("consumer"),
    *SHARE_GROUP_DEFINITIONS,
    *STREAMS_GROUP_DEFINITIONS,
)

CLIENT_METRICS_DEFINITIONS = (
    ConfigDefinition("metrics", LIST, (), "Prefixes of the names of metrics that clients are asked for; * for all metrics."),
    ConfigDefinition("interval.ms", INT, 300000, "How often clients are asked to send their metrics."),
    ConfigDefinition(
        "match",
        LIST,
        (),
        "Which clients are asked: attribute=pattern, all of which have to match. The attributes are client_instance_id, "
        "client_id, client_software_name, client_software_version, client_source_address and client_source_port.",
    ),
)


_Config = ConfigDefinition

_CONSUMER_GROUPS = (
    _Config(
        "group.coordinator.rebalance.protocols",
        LIST,
        ("classic", "consumer", "streams"),
        "The group protocols that the broker serves. consumer also needs the feature group.version, streams the feature "
        "streams.version.",
        Entries("classic", "consumer", "share", "streams"),
    ),
    *broker_sessions("consumer"),
    *broker_assignment_interval("consumer"),
    broker_offload("consumer"),
    _Config("group.consumer.max.size", INT, MAX_INT, "The most members in one consumer group.", AtLeast(1)),
    _Config(
        "group.consumer.assignors",
        LIST,
        ("uniform", "range"),
        "The assignors that members of consumer groups can ask for: uniform, range, and third-party assignors by their entry "
        "point in odradek.assignors. The first is the default.",
        Entries(least=1),
    ),
    _Config(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        "How a group with members can change its protocol while they keep running: from classic to consumer (upgrade), from "
        "consumer to classic (downgrade), both or neither.",
        OneOf("disabled", "upgrade", "downgrade", "bidirectional", any_case=True),
    ),
    _Config(
        "group.consumer.regex.refresh.interval.ms",
        INT,
        600000,
        "How long a consumer group keeps the topics that match its regular expression before it looks for them again.",
        AtLeast(10000),
        internal=True,
    ),
)


def _window(name: str, default: int, what: str) -> ConfigDefinition:
    return ConfigDefinition(name, INT, default, what, AtLeast(1), "low")


GROUPS = (
    _Config("group.min.session.timeout.ms", INT, 6000, "The shortest session timeout a group member may ask for."),
    _Config("group.max.session.timeout.ms", INT, 1800000, "The longest session timeout a group member may ask for."),
    _Config(
        "group.initial.rebalance.delay.ms",
        INT,
        0,
        "How long the first rebalance of an empty group waits for more members.",
        kafka_default="3000",
        difference="on a laptop and in tests every new group would lose three seconds, and a second member is rare",
    ),
    _Config("group.max.size", INT, MAX_INT, "The most members in one group of the classic protocol.", AtLeast(1)),
    *_CONSUMER_GROUPS,
    *SHARE_GROUPS,
    *STREAMS_GROUPS,
    _Config("offset.metadata.max.bytes", INT, 4096, "The longest metadata that may be committed with an offset.", None, "high"),
    _Config(
        "offsets.commit.timeout.ms",
        INT,
        5000,
        "How long a group coordinator's writes may wait for the other replicas of __consumer_offsets.",
        AtLeast(1),
        "high",
    ),
    _Config("offsets.load.buffer.size", INT, 5242880, "Bytes read at a time when offsets are loaded.", AtLeast(1), "high"),
    _Config(
        "offsets.retention.minutes",
        INT,
        10080,
        "How long committed offsets are kept after their group becomes empty.",
        AtLeast(1),
        "high",
    ),
    _Config("offsets.retention.check.interval.ms", LONG, 600000, "How often offsets are checked for expiry.", AtLeast(1), "high"),
    _Config(
        "offsets.topic.num.partitions",
        INT,
        50,
        "The number of partitions of __consumer_offsets. It decides each group's partition, so you must not change it later.",
        AtLeast(1),
        "high",
    ),
    one_replica("offsets.topic.replication.factor", SHORT, "3", "The replication factor of __consumer_offsets."),
    _Config("offsets.topic.segment.bytes", INT, 104857600, "segment.bytes of __consumer_offsets.", AtLeast(1), "high"),
    _Config(
        "offsets.topic.compression.codec",
        INT,
        0,
        "The compression of __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        OneOf(0, 1, 2, 3, 4),
        "high",
    ),
)

QUOTAS = (
    _window("quota.window.num", 11, "The number of samples that rates of client quotas are measured over."),
    _window("quota.window.size.seconds", 1, "The length of one sample. A request quota throttles no longer than this."),
    _window(
        "controller.quota.window.num",
        11,
        "How many samples' worth of partitions an idle client with a controller mutation quota may change at once.",
    ),
    _window("controller.quota.window.size.seconds", 1, "The length of one sample."),
)
QUOTA_SECTIONS = (("Client quotas", QUOTAS),)


TELEMETRY_SECTIONS = (
    (
        "Client telemetry",
        (
            ConfigDefinition(
                "telemetry.max.bytes",
                INT,
                1048576,
                "The most bytes in one push of a client, before decompression.",
                AtLeast(1),
                importance="low",
            ),
        ),
    ),
)
