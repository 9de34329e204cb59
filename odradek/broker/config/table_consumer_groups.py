"""Part of the table's section on groups: the protocols of groups, and the configs of consumer groups (KIP-848)."""

from odradek.broker.config.definitions import CLUSTER_WIDE, INT, LIST, MAX_INT, STRING, ConfigDefinition
from odradek.broker.config.validators import AtLeast, Entries, OneOf

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
