"""Metadata records of the cluster as a whole: configs, features, blocks of producer ids."""

from dataclasses import dataclass, field
from typing import ClassVar

from odradek.protocol.metadata_records.base import INT8, INT16, INT32, INT64, STRING, MetadataRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRecord(MetadataRecord):
    """A config of a resource is set, or removed if ``value`` is None.

    ``resource_type`` is Kafka's ConfigResource.Type: 2 topic, 4 broker (an empty ``resource_name`` is the cluster-wide
    default).
    """

    __api_key__: ClassVar[int] = 4
    resource_type: int = field(metadata=INT8)
    resource_name: str = field(metadata=STRING)
    name: str = field(metadata=STRING)
    value: str | None = field(metadata=STRING)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevelRecord(MetadataRecord):
    """A feature is finalized at a level; 0 removes it."""

    __api_key__: ClassVar[int] = 12
    name: str = field(metadata=STRING)
    feature_level: int = field(metadata=INT16)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsRecord(MetadataRecord):
    """A block of producer ids was handed to a broker; ``next_producer_id`` is the first id after it."""

    __api_key__: ClassVar[int] = 15
    broker_id: int = field(metadata=INT32)
    broker_epoch: int = field(metadata=INT64, default=-1)
    next_producer_id: int = field(metadata=INT64)
