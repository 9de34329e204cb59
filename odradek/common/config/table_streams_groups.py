"""The table, a part of the fourth: streams groups (KIP-1071), the broker's configs and those of single groups.

``server_default`` names the broker config that a group's config falls back to. A group's value must lie between the broker's
limits, ``group.streams.min.*`` and ``group.streams.max.*``.
"""

from odradek.common.config.definitions import (
    INT,
    LIST,
    LONG,
    MAX_INT,
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
)

_Config = ConfigDefinition
_NO_WARMUPS = "Kafka 4.4 assigns no warm-up tasks, either"


STREAMS_GROUP_DEFINITIONS = (
    group_config("streams.session.timeout.ms", 45000, 1, "When a silent member of a streams group is removed."),
    group_config("streams.heartbeat.interval.ms", 5000, 1, "How often a member of a streams group sends a heartbeat."),
    group_config("streams.assignment.interval.ms", 1000, 0, "The least time between two target assignments of a streams group."),
    group_config("streams.initial.rebalance.delay.ms", 3000, 0, "How long a new streams group waits for more members."),
    group_config("streams.num.standby.replicas", 0, 0, "The standby tasks of each task with state."),
    group_config(
        "streams.task.offset.interval.ms",
        60000,
        1,
        "How often a member of a streams group sends the offsets of its state.",
        internal=True,
    ),
    group_config(
        "streams.num.warmup.replicas", 2, 0, "The most warm-up tasks of a streams group.", internal=True, unused=_NO_WARMUPS
    ),
    _Config(
        "streams.acceptable.recovery.lag",
        LONG,
        10000,
        "How many offsets a member's state may lag behind to count as caught up. Members are told.",
        AtLeast(0),
        server_default="group.streams.acceptable.recovery.lag",
        internal=True,
    ),
    group_offload("streams"),
    _Config(
        "streams.rack.aware.assignment.tags",
        LIST,
        (),
        "The client tags that each member of a streams group should have.",
        Entries(),
        "low",
        server_default="group.streams.rack.aware.assignment.tags",
    ),
    _Config(
        "streams.assignor.name",
        STRING,
        "sticky",
        "The assignor of a streams group, one of group.streams.assignors.",
        OneOf("sticky"),
    ),
)


def _int(name: str, default: int, least: int, doc: str, *, internal: bool = False, unused: str = "") -> ConfigDefinition:
    return ConfigDefinition(f"group.streams.{name}", INT, default, doc, AtLeast(least), internal=internal, unused_reason=unused)


STREAMS_GROUPS = (
    *broker_sessions("streams"),
    _int("max.size", MAX_INT, 1, "The most members in one streams group."),
    _int("num.standby.replicas", 0, 0, "The standby tasks of each task with state. A group can have its own."),
    _int("max.standby.replicas", 2, 0, "The most standby tasks you can set for one streams group."),
    _int(
        "initial.rebalance.delay.ms",
        3000,
        0,
        "How long a new streams group waits for more members before its first assignment. A group can have its own.",
    ),
    *broker_assignment_interval("streams"),
    _Config(
        "group.streams.assignors",
        LIST,
        ("sticky",),
        "The assignors of streams groups. The first is the default.",
        Entries("sticky", least=1),
        unused_reason="sticky is the only one",
    ),
    broker_offload("streams"),
    _int(
        "task.offset.interval.ms",
        60000,
        1,
        "How often a member of a streams group sends the offsets of its state.",
        internal=True,
    ),
    _int(
        "min.task.offset.interval.ms",
        15000,
        1,
        "The shortest offset interval you can set for one streams group.",
        internal=True,
    ),
    _int("num.warmup.replicas", 2, 0, "The most warm-up tasks of a streams group.", internal=True, unused=_NO_WARMUPS),
    _int("max.warmup.replicas", 20, 0, "The most warm-up tasks you can set.", internal=True),
    _Config(
        "group.streams.rack.aware.assignment.tags",
        LIST,
        (),
        "The client tags that each member of a streams group should have. A group can have its own.",
        Entries(),
        "low",
    ),
    _Config(
        "group.streams.acceptable.recovery.lag",
        LONG,
        10000,
        "How many offsets a member's state may lag behind to count as caught up. Members are told.",
        AtLeast(0),
        internal=True,
    ),
)
