"""The table, fourth part: the configs of groups and of client metrics.

Imported only to describe and to set them. Kafka has the configs of a group for the protocols of KIP-848, KIP-932 and KIP-1071,
and those of client metrics for KIP-714. Those of share and streams groups have no use here. ``server_default`` names the broker
config that a group's config falls back to; those of share and streams groups are not in the broker's table.
"""

from odradek.broker.config.definitions import BOOLEAN, INT, LIST, STRING, ConfigDefinition, ConfigType, Value
from odradek.broker.config.validators import AtLeast

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
