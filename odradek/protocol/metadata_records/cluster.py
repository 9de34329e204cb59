"""Metadata records of the cluster: configs, features, blocks of producer ids. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple


class ConfigRecord(NamedTuple):
    """A config of a resource is set, or removed if ``value`` is None.

    ``resource_type`` is Kafka's ConfigResource.Type: 2 topic, 4 broker (an empty ``resource_name`` is the cluster-wide
    default).
    """

    resource_type: int = 0
    resource_name: str = ""
    name: str = ""
    value: str | None = None


class FeatureLevelRecord(NamedTuple):
    """A feature is finalized at a level; 0 removes it."""

    name: str = ""
    feature_level: int = 0


class ProducerIdsRecord(NamedTuple):
    """A block of producer ids was handed to a broker; ``next_producer_id`` is the first id after it."""

    broker_id: int = 0
    broker_epoch: int = -1
    next_producer_id: int = 0


CLASSES: Final[dict[str, type[Any]]] = {
    "ConfigRecord": ConfigRecord,
    "FeatureLevelRecord": FeatureLevelRecord,
    "ProducerIdsRecord": ProducerIdsRecord,
}
FIELDS: Final[dict[int, str]] = {
    4: """
ConfigRecord 0 flexible 0+
 resource_type int8
 resource_name string
 name string
 value string null
""",
    12: """
FeatureLevelRecord 0 flexible 0+
 name string
 feature_level int16
""",
    15: """
ProducerIdsRecord 0 flexible 0+
 broker_id int32
 broker_epoch int64 = -1
 next_producer_id int64
""",
}
