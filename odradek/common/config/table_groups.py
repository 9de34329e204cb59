"""The table, fourth part: the broker's configs of group protocols, consumer groups (KIP-848), quotas and telemetry.

It also has the configs of single groups and of subscriptions to client metrics (KIP-714). Kafka's groups have configs for the
protocols of KIP-848, KIP-932 and KIP-1071. Configs of share and streams groups have no effect here. ``server_default`` names
the broker config that a group's config falls back to. The fallbacks of share and streams groups are not in the broker's table.
"""

from odradek.common.config.definitions import (
    BOOLEAN,
    CLUSTER_WIDE,
    INT,
    LIST,
    MAX_INT,
    STRING,
    AtLeast,
    ConfigDefinition,
    ConfigType,
    Entries,
    OneOf,
    Value,
)

_NO_SUCH_GROUPS = "there are no share or streams groups"


def _group(name: str, kind: ConfigType, default: Value, doc: str, *, own: bool = False) -> ConfigDefinition:
    return ConfigDefinition(name, kind, default, doc, server_default=name if own else f"group.{name}", no_use=_NO_SUCH_GROUPS)


def _consumer(name: str, default: int, least: int, doc: str) -> ConfigDefinition:
    return ConfigDefinition(name, INT, default, doc, AtLeast(least), server_default=f"group.{name}")


GROUP_DEFINITIONS = (
    _consumer("consumer.session.timeout.ms", 45000, 1, "When a silent member of the group is removed."),
    _consumer("consumer.heartbeat.interval.ms", 5000, 1, "How often a member of the group sends a heartbeat."),
    _consumer("consumer.assignment.interval.ms", 1000, 0, "The least time between two target assignments of the group."),
    _group("share.session.timeout.ms", INT, 45000, "When a silent member of a share group is removed."),
    _group("share.heartbeat.interval.ms", INT, 5000, "How often a member of a share group sends a heartbeat."),
    _group("share.assignment.interval.ms", INT, 1000, "The least time between two assignments of a share group."),
    _group("share.record.lock.duration.ms", INT, 30000, "How long a member of a share group has a record to itself."),
    _group("share.delivery.count.limit", INT, 5, "How often a record is given to a share group."),
    _group("share.partition.max.record.locks", INT, 2000, "The most records of a partition that members have to themselves."),
    _group("share.auto.offset.reset", STRING, "latest", "Where a share group begins in a partition.", own=True),
    _group("share.isolation.level", STRING, "read_uncommitted", "Which records a share group reads.", own=True),
    _group("share.renew.acknowledge.enable", BOOLEAN, True, "Whether a member may keep a record for longer.", own=True),
    _group("streams.session.timeout.ms", INT, 45000, "When a silent member of a streams group is removed."),
    _group("streams.heartbeat.interval.ms", INT, 5000, "How often a member of a streams group sends a heartbeat."),
    _group("streams.assignment.interval.ms", INT, 1000, "The least time between two assignments of a streams group."),
    _group("streams.initial.rebalance.delay.ms", INT, 3000, "How long a new streams group waits for more members."),
    _group("streams.num.standby.replicas", INT, 0, "Standby replicas of each task of a streams group."),
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
        "The protocols of groups that are served: consumer only if the feature group.version is on as well.",
        Entries("classic", "consumer", "share", "streams"),
    ),
    _Config(
        "group.consumer.session.timeout.ms",
        INT,
        45000,
        "When a silent member of a consumer group is removed. A group may have its own.",
        AtLeast(1),
    ),
    _Config(
        "group.consumer.min.session.timeout.ms",
        INT,
        45000,
        "The shortest session timeout that a consumer group may have of its own.",
        AtLeast(1),
    ),
    _Config(
        "group.consumer.max.session.timeout.ms",
        INT,
        60000,
        "The longest session timeout that a consumer group may have of its own.",
        AtLeast(1),
    ),
    _Config(
        "group.consumer.heartbeat.interval.ms",
        INT,
        5000,
        "How often a member of a consumer group sends a heartbeat. A group may have its own.",
        AtLeast(1),
    ),
    _Config(
        "group.consumer.min.heartbeat.interval.ms",
        INT,
        5000,
        "The shortest heartbeat interval that a consumer group may have of its own.",
        AtLeast(1),
    ),
    _Config(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        15000,
        "The longest heartbeat interval that a consumer group may have of its own.",
        AtLeast(1),
    ),
    _Config(
        "group.consumer.assignment.interval.ms",
        INT,
        1000,
        "The least time between two target assignments of a consumer group. A group may have its own.",
        AtLeast(0),
        update_mode=CLUSTER_WIDE,
    ),
    _Config(
        "group.consumer.min.assignment.interval.ms",
        INT,
        0,
        "The shortest assignment interval that a consumer group may have of its own.",
        AtLeast(0),
    ),
    _Config(
        "group.consumer.max.assignment.interval.ms",
        INT,
        15000,
        "The longest assignment interval that a consumer group may have of its own.",
        AtLeast(0),
    ),
    _Config("group.consumer.max.size", INT, MAX_INT, "The most members in one consumer group.", AtLeast(1)),
    _Config(
        "group.consumer.assignors",
        LIST,
        ("uniform", "range"),
        "The assignors that members of consumer groups may ask for: uniform, range, and a third party's by the name of its"
        " entry point in odradek.assignors. The first is the default.",
        Entries(least=1),
    ),
    _Config(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        "Whether a group with members changes its protocol while they go on: a classic group becomes a consumer group (upgrade),"
        " or a consumer group a classic one (downgrade), or both, or neither.",
        OneOf("disabled", "upgrade", "downgrade", "bidirectional", any_case=True),
    ),
    _Config(
        "group.consumer.regex.refresh.interval.ms",
        INT,
        600000,
        "How long the topics that match a regular expression of a consumer group are kept before they are looked for again.",
        AtLeast(10000),
    ),
)


def _window(name: str, default: int, what: str) -> ConfigDefinition:
    return ConfigDefinition(name, INT, default, what, AtLeast(1), "low")


QUOTAS = (
    _window("quota.window.num", 11, "How many samples the rates of client quotas are measured over."),
    _window("quota.window.size.seconds", 1, "How long such a sample is. A request quota throttles for so long at most."),
    _window(
        "controller.quota.window.num",
        11,
        "How many samples' worth of partitions a client may change at once where its controller mutation quota has rested.",
    ),
    _window("controller.quota.window.size.seconds", 1, "How long such a sample is."),
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
                "The most bytes that a client may push at a time, compressed as they come.",
                AtLeast(1),
                importance="low",
            ),
        ),
    ),
)
