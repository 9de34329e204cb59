"""Metadata records of brokers and controllers: their registration with the controller (KIP-631, KIP-919)."""

from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

from odradek.protocol.metadata_records.base import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID_,
    MetadataRecord,
    Nested,
    since,
    tagged,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEndpoint(Nested):
    """The address of a node's listener."""

    name: str = field(metadata=STRING)
    host: str = field(metadata=STRING)
    port: int = field(metadata=UINT16)
    security_protocol: int = field(metadata=INT16)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFeature(Nested):
    """The levels of a feature that a node supports."""

    name: str = field(metadata=STRING)
    min_supported_version: int = field(metadata=INT16)
    max_supported_version: int = field(metadata=INT16)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord(MetadataRecord):
    """A broker has registered: a new incarnation of it, with a new epoch."""

    __version__: ClassVar[int] = 4
    __api_key__: ClassVar[int] = 0
    broker_id: int = field(metadata=INT32)
    is_migrating_zk_broker: bool = field(metadata=since(BOOL, 2), default=False)
    incarnation_id: UUID = field(metadata=UUID_)
    broker_epoch: int = field(metadata=INT64)
    end_points: tuple[NodeEndpoint, ...]
    features: tuple[NodeFeature, ...]
    rack: str | None = field(metadata=STRING)
    fenced: bool = field(metadata=BOOL, default=True)
    in_controlled_shutdown: bool = field(metadata=since(BOOL, 1), default=False)
    log_dirs: tuple[UUID, ...] = field(metadata=tagged(UUID_, 0, since=3), default=())
    cordoned_log_dirs: tuple[UUID, ...] | None = field(metadata=tagged(UUID_, 1, since=4), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerRecord(MetadataRecord):
    """A broker is no longer a member of the cluster."""

    __api_key__: ClassVar[int] = 1
    broker_id: int = field(metadata=INT32)
    broker_epoch: int = field(metadata=INT64)


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceBrokerRecord(MetadataRecord):
    """A broker is fenced: it leads no partition. Written by Kafka before 3.3."""

    __api_key__: ClassVar[int] = 7
    id: int = field(metadata=INT32)
    epoch: int = field(metadata=INT64)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfenceBrokerRecord(MetadataRecord):
    """A broker is unfenced: it may lead partitions. Written by Kafka before 3.3."""

    __api_key__: ClassVar[int] = 8
    id: int = field(metadata=INT32)
    epoch: int = field(metadata=INT64)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationChangeRecord(MetadataRecord):
    """A registration changes. ``fenced``: 1 fences, -1 unfences, 0 means no change; ``in_controlled_shutdown``: 1 sets it.

    Empty ``log_dirs`` and null ``cordoned_log_dirs`` mean no change.
    """

    __version__: ClassVar[int] = 3
    __api_key__: ClassVar[int] = 17
    broker_id: int = field(metadata=INT32)
    broker_epoch: int = field(metadata=INT64)
    fenced: int = field(metadata=tagged(INT8, 0), default=0)
    in_controlled_shutdown: int = field(metadata=tagged(INT8, 1, since=1), default=0)
    log_dirs: tuple[UUID, ...] = field(metadata=tagged(UUID_, 2, since=2), default=())
    cordoned_log_dirs: tuple[UUID, ...] | None = field(metadata=tagged(UUID_, 3, since=3), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterControllerRecord(MetadataRecord):
    """A controller has registered."""

    __api_key__: ClassVar[int] = 27
    controller_id: int = field(metadata=INT32)
    incarnation_id: UUID = field(metadata=UUID_)
    zk_migration_ready: bool = field(metadata=BOOL)
    end_points: tuple[NodeEndpoint, ...]
    features: tuple[NodeFeature, ...]
