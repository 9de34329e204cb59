"""The table, fourth part: the configs of groups and of client metrics, which are told and cannot be set.

Imported only to describe them. Kafka has the configs of a group for the protocols of KIP-848, KIP-932 and KIP-1071, and those of
client metrics for KIP-714. None of these is served, so that no config here has a use. ``server_default`` names the broker config
that a group's config falls back to in Kafka; it is not in the broker's table.
"""

from odradek.broker.config.definitions import BOOLEAN, INT, LIST, STRING, ConfigDefinition, ConfigType, Value

_CLASSIC = "groups speak the classic protocol"
_NOT_COLLECTED = "client metrics are not collected"


def _group(name: str, kind: ConfigType, default: Value, doc: str, *, own: bool = False) -> ConfigDefinition:
    return ConfigDefinition(name, kind, default, doc, server_default=name if own else f"group.{name}", no_use=_CLASSIC)


def _metrics(name: str, kind: ConfigType, default: Value, doc: str) -> ConfigDefinition:
    return ConfigDefinition(name, kind, default, doc, no_use=_NOT_COLLECTED)


GROUP_DEFINITIONS = (
    _group("consumer.session.timeout.ms", INT, 45000, "When a silent member of a consumer group is removed."),
    _group("consumer.heartbeat.interval.ms", INT, 5000, "How often a member of a consumer group sends a heartbeat."),
    _group("consumer.assignment.interval.ms", INT, 1000, "The least time between two assignments of a consumer group."),
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
    _metrics("metrics", LIST, (), "Prefixes of the metrics that clients are asked for."),
    _metrics("interval.ms", INT, 300000, "How often clients are asked to send their metrics."),
    _metrics("match", LIST, (), "Which clients are asked."),
)
