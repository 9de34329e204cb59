"""The table, fourth part: the broker's configs of group protocols, consumer groups (KIP-848), quotas and telemetry.

It also has the configs of single groups and of subscriptions to client metrics (KIP-714). Kafka's groups have configs for the
protocols of KIP-848, KIP-932 (``table_share_groups``) and KIP-1071. Configs of streams groups have no effect here.
``server_default`` names the broker config that a group's config falls back to. The fallbacks of streams groups are not in the
broker's table.
"""

from odradek.common.config.definitions import (
    CLUSTER_WIDE,
    INT,
    LIST,
    MAX_INT,
    STRING,
    AtLeast,
    ConfigDefinition,
    Entries,
    OneOf,
)
from odradek.common.config.table_share_groups import SHARE_GROUP_DEFINITIONS

_NO_SUCH_GROUPS = "there are no streams groups"


def _streams(name: str, default: int, doc: str) -> ConfigDefinition:
    return ConfigDefinition(name, INT, default, doc, server_default=f"group.{name}", unused_reason=_NO_SUCH_GROUPS)


def _consumer(name: str, default: int, least: int, doc: str) -> ConfigDefinition:
    return ConfigDefinition(name, INT, default, doc, AtLeast(least), server_default=f"group.{name}")


GROUP_DEFINITIONS = (
    _consumer("consumer.session.timeout.ms", 45000, 1, "When a silent member of the group is removed."),
    _consumer("consumer.heartbeat.interval.ms", 5000, 1, "How often a member of the group sends a heartbeat."),
    _consumer("consumer.assignment.interval.ms", 1000, 0, "The least time between two target assignments of the group."),
    *SHARE_GROUP_DEFINITIONS,
    _streams("streams.session.timeout.ms", 45000, "When a silent member of a streams group is removed."),
    _streams("streams.heartbeat.interval.ms", 5000, "How often a member of a streams group sends a heartbeat."),
    _streams("streams.assignment.interval.ms", 1000, "The least time between two assignments of a streams group."),
    _streams("streams.initial.rebalance.delay.ms", 3000, "How long a new streams group waits for more members."),
    _streams("streams.num.standby.replicas", 0, "Standby replicas of each task of a streams group."),
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

CONSUMER_GROUPS = (
    _Config(
        "group.coordinator.rebalance.protocols",
        LIST,
        ("classic", "consumer", "streams"),
        "The group protocols that the broker serves. consumer also needs the feature group.version.",
        Entries("classic", "consumer", "share", "streams"),
    ),
    _Config(
        "group.consumer.session.timeout.ms",
        INT,
        45000,
        "How long a member of a consumer group may be silent before it is removed. A group can have its own.",
        AtLeast(1),
    ),
    _Config(
        "group.consumer.min.session.timeout.ms",
        INT,
        45000,
        "The shortest session timeout you can set for one consumer group.",
        AtLeast(1),
    ),
    _Config(
        "group.consumer.max.session.timeout.ms",
        INT,
        60000,
        "The longest session timeout you can set for one consumer group.",
        AtLeast(1),
    ),
    _Config(
        "group.consumer.heartbeat.interval.ms",
        INT,
        5000,
        "How often a member of a consumer group sends a heartbeat. A group can have its own.",
        AtLeast(1),
    ),
    _Config(
        "group.consumer.min.heartbeat.interval.ms",
        INT,
        5000,
        "The shortest heartbeat interval you can set for one consumer group.",
        AtLeast(1),
    ),
    _Config(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        15000,
        "The longest heartbeat interval you can set for one consumer group.",
        AtLeast(1),
    ),
    _Config(
        "group.consumer.assignment.interval.ms",
        INT,
        1000,
        "The least time between two target assignments of a consumer group. A group can have its own.",
        AtLeast(0),
        update_mode=CLUSTER_WIDE,
    ),
    _Config(
        "group.consumer.min.assignment.interval.ms",
        INT,
        0,
        "The shortest assignment interval you can set for one consumer group.",
        AtLeast(0),
    ),
    _Config(
        "group.consumer.max.assignment.interval.ms",
        INT,
        15000,
        "The longest assignment interval you can set for one consumer group.",
        AtLeast(0),
    ),
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
    ),
)


def _window(name: str, default: int, what: str) -> ConfigDefinition:
    return ConfigDefinition(name, INT, default, what, AtLeast(1), "low")


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
