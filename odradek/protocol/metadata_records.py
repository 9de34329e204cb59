"""Cluster metadata as records: Kafka's KRaft schemas, in the versions Kafka 4.3 writes.

The controller keeps topics, ids, configs, features and blocks of producer ids as values of records in `__cluster_metadata`
(KIP-595, KIP-631), so that ``kafka-dump-log --cluster-metadata-decoder`` reads what odradek wrote. A value is

    unsigned varint frame version (1) | unsigned varint record type (api key) | unsigned varint version | flexible message

The classes below are ours, in kio's dataclass conventions, and kio's codec runs them; their plain ``int``s carry the wire type
in the field's metadata. Left out: record types that one broker that is its own controller never writes (registrations, ACLs,
quotas, tokens, partition changes); ``decode`` refuses them by name of their number.

Source: metadata/src/main/resources/common/metadata/*.json of Apache Kafka.
"""

import io
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast
from uuid import UUID

from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.varint import read_uvarint

FRAME_VERSION = 1

_INT8 = {"kafka_type": "int8"}
_INT16 = {"kafka_type": "int16"}
_INT32 = {"kafka_type": "int32"}
_INT64 = {"kafka_type": "int64"}
_STRING = {"kafka_type": "string"}
_UUID = {"kafka_type": "uuid"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord:
    """A topic is there; its partitions follow in records of the same batch."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 2
    name: str = field(metadata=_STRING)
    topic_id: UUID = field(metadata=_UUID)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord:
    """A partition of a topic: its replicas (broker ids), leader, epochs, and the directory id of each replica.

    ``eligible_leader_replicas`` and ``last_known_elr`` (KIP-966) are null: the in-sync set never shrinks here.
    """

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 2
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 3
    partition_id: int = field(metadata=_INT32, default=-1)
    topic_id: UUID = field(metadata=_UUID)
    replicas: tuple[int, ...] = field(metadata=_INT32)
    isr: tuple[int, ...] = field(metadata=_INT32)
    removing_replicas: tuple[int, ...] = field(metadata=_INT32, default=())
    adding_replicas: tuple[int, ...] = field(metadata=_INT32, default=())
    leader: int = field(metadata=_INT32, default=-1)
    leader_recovery_state: int = field(metadata={"kafka_type": "int8", "tag": 0}, default=0)
    leader_epoch: int = field(metadata=_INT32, default=-1)
    partition_epoch: int = field(metadata=_INT32, default=-1)
    directories: tuple[UUID, ...] = field(metadata=_UUID)
    eligible_leader_replicas: tuple[int, ...] | None = field(metadata={"kafka_type": "int32", "tag": 1}, default=None)
    last_known_elr: tuple[int, ...] | None = field(metadata={"kafka_type": "int32", "tag": 2}, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRecord:
    """A config of a resource is set, or removed where ``value`` is None.

    ``resource_type`` is Kafka's ConfigResource.Type: 2 topic, 4 broker (an empty ``resource_name`` is the cluster-wide default).
    """

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 4
    resource_type: int = field(metadata=_INT8)
    resource_name: str = field(metadata=_STRING)
    name: str = field(metadata=_STRING)
    value: str | None = field(metadata=_STRING)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTopicRecord:
    """A topic is gone, with its partitions and its configs."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 9
    topic_id: UUID = field(metadata=_UUID)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevelRecord:
    """A feature is finalized at a level; 0 takes it away."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 12
    name: str = field(metadata=_STRING)
    feature_level: int = field(metadata=_INT16)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsRecord:
    """A block of producer ids was handed to a broker; ``next_producer_id`` is the first id after it."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 15
    broker_id: int = field(metadata=_INT32)
    broker_epoch: int = field(metadata=_INT64, default=-1)
    next_producer_id: int = field(metadata=_INT64)


MetadataRecord = TopicRecord | PartitionRecord | ConfigRecord | RemoveTopicRecord | FeatureLevelRecord | ProducerIdsRecord

_RECORD_TYPES: dict[int, type[MetadataRecord]] = {
    record_type.__api_key__: record_type
    for record_type in (TopicRecord, PartitionRecord, ConfigRecord, RemoveTopicRecord, FeatureLevelRecord, ProducerIdsRecord)
}


def encode(record: MetadataRecord) -> bytes:
    """The value of the log record that stands for ``record``."""
    buffer = io.BytesIO()
    buffer.write(bytes((FRAME_VERSION, record.__api_key__, record.__version__)))  # each below 128: a varint of one byte
    entity_writer(cast("type[Any]", type(record)))(buffer, record)
    return buffer.getvalue()


def decode(value: bytes) -> MetadataRecord:
    """The metadata record in a log record's value. Raises MalformedMessage for anything that is not one."""
    frame_version, position = read_uvarint(value, 0)
    if frame_version != FRAME_VERSION:
        raise MalformedMessage(f"metadata record of frame version {frame_version}, known is {FRAME_VERSION}")
    api_key, position = read_uvarint(value, position)
    version, position = read_uvarint(value, position)
    record_type = _RECORD_TYPES.get(api_key)
    if record_type is None or version != record_type.__version__:
        raise MalformedMessage(f"metadata record of unknown type {api_key} version {version}")
    try:
        record, size = entity_reader(cast("type[Any]", record_type))(value, position)
    except Exception as error:
        raise MalformedMessage(f"{record_type.__name__} cannot be read: {error}") from error
    if position + size != len(value):
        raise MalformedMessage(f"{len(value) - position - size} bytes follow a {record_type.__name__}")
    return cast("MetadataRecord", record)
