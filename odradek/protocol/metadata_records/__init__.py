"""Cluster metadata as records: every kind of record of Apache Kafka 4.4, in its KRaft schemas.

Topics, ids, configs, features and blocks of producer ids are values of records in `__cluster_metadata` (KIP-631), so that
``kafka-dump-log --cluster-metadata-decoder`` reads odradek's log, and odradek reads Kafka's. A value is

    unsigned varint frame version (1) | unsigned varint record type (api key) | unsigned varint version | flexible message

The newest version of each record is written; every version is read. Fields missing in an older version have their defaults.
Classes, and tables of fields in every version (``protocol.messages``), are in the modules of this package.
"""

from functools import cache, lru_cache
from importlib import import_module
from struct import unpack
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.messages import FieldSpec, layout_of, newest_version
from odradek.protocol.metadata_records.cluster import ConfigRecord, FeatureLevelRecord, ProducerIdsRecord
from odradek.protocol.metadata_records.topics import PartitionRecord, RemoveTopicRecord, TopicRecord
from odradek.protocol.readers import ReaderCompiler, ReadFrame, compile_reader
from odradek.protocol.varint import read_uvarint
from odradek.protocol.writers import Write, compile_writer

if TYPE_CHECKING:
    from odradek.protocol.metadata_records import log_control, nodes, partition_changes, security

__all__ = [
    "ConfigRecord",
    "FeatureLevelRecord",
    "MetadataRecord",
    "PartitionRecord",
    "ProducerIdsRecord",
    "RemoveTopicRecord",
    "TopicRecord",
    "UnknownMetadataRecord",
    "decode",
    "encode",
    "kind_of",
    "record_types",
]

MetadataRecord: TypeAlias = (
    "ConfigRecord | FeatureLevelRecord | ProducerIdsRecord | PartitionRecord | RemoveTopicRecord | TopicRecord"
    "| log_control.NoOpRecord | log_control.ZkMigrationStateRecord | log_control.BeginTransactionRecord"
    "| log_control.EndTransactionRecord | log_control.AbortTransactionRecord"
    "| nodes.RegisterBrokerRecord | nodes.UnregisterBrokerRecord | nodes.FenceBrokerRecord | nodes.UnfenceBrokerRecord"
    "| nodes.BrokerRegistrationChangeRecord | nodes.RegisterControllerRecord | nodes.UnregisterControllerRecord"
    "| partition_changes.PartitionChangeRecord | partition_changes.ClearElrRecord"
    "| security.AccessControlEntryRecord | security.RemoveAccessControlEntryRecord | security.ClientQuotaRecord"
    "| security.UserScramCredentialRecord | security.RemoveUserScramCredentialRecord"
    "| security.DelegationTokenRecord | security.RemoveDelegationTokenRecord"
)

FRAME_VERSION = 1

# The module and class of each record type, by its number. The modules of types that odradek does not write are imported only if a
# log has one of them.
_TYPES = {
    0: "nodes.RegisterBrokerRecord",
    1: "nodes.UnregisterBrokerRecord",
    2: "topics.TopicRecord",
    3: "topics.PartitionRecord",
    4: "cluster.ConfigRecord",
    5: "partition_changes.PartitionChangeRecord",
    7: "nodes.FenceBrokerRecord",
    8: "nodes.UnfenceBrokerRecord",
    9: "topics.RemoveTopicRecord",
    10: "security.DelegationTokenRecord",
    11: "security.UserScramCredentialRecord",
    12: "cluster.FeatureLevelRecord",
    14: "security.ClientQuotaRecord",
    15: "cluster.ProducerIdsRecord",
    17: "nodes.BrokerRegistrationChangeRecord",
    18: "security.AccessControlEntryRecord",
    19: "security.RemoveAccessControlEntryRecord",
    20: "log_control.NoOpRecord",
    21: "log_control.ZkMigrationStateRecord",
    22: "security.RemoveUserScramCredentialRecord",
    23: "log_control.BeginTransactionRecord",
    24: "log_control.EndTransactionRecord",
    25: "log_control.AbortTransactionRecord",
    26: "security.RemoveDelegationTokenRecord",
    27: "nodes.RegisterControllerRecord",
    28: "partition_changes.ClearElrRecord",
    29: "nodes.UnregisterControllerRecord",
}
_KINDS = {place.partition(".")[2]: kind for kind, place in _TYPES.items()}


class UnknownMetadataRecord(MalformedMessage):
    """A record of a type or version that Apache Kafka 4.4 does not have; a newer Kafka may have written it."""

    def __init__(self, kind: int, version: int) -> None:
        super().__init__(f"a metadata record of unknown type {kind}, version {version}")


def record_types() -> list[type[MetadataRecord]]:
    """Return the class of every record type."""
    return [_module(kind).CLASSES[name] for name, kind in _KINDS.items()]


def kind_of(record: MetadataRecord) -> int:
    """Return Kafka's number of the record's type."""
    return _KINDS[type(record).__name__]


def encode(record: MetadataRecord) -> bytes:
    """Encode ``record`` as the value of a log record."""
    kind = kind_of(record)
    version, write = _writer(kind)
    chunks = [bytes((FRAME_VERSION, kind, version))]  # each below 128: a varint of one byte
    write(chunks.append, record)
    return b"".join(chunks)


def decode(value: bytes) -> MetadataRecord:
    """Decode the metadata record in a log record's value.

    Raises MalformedMessage, and UnknownMetadataRecord, a subclass of it.
    """
    frame_version, position = read_uvarint(value, 0)
    if frame_version != FRAME_VERSION:
        raise MalformedMessage(f"a metadata record has frame version {frame_version}, not {FRAME_VERSION}")
    kind, position = read_uvarint(value, position)
    version, position = read_uvarint(value, position)
    read = _reader(kind, version)
    record: MetadataRecord
    try:
        record, end = read(value, position)
    except MalformedMessage as error:
        raise MalformedMessage(f"cannot read a {_name(kind)}: {error.reason}") from None
    if end != len(value):
        raise MalformedMessage(f"{len(value) - end} bytes follow a {_name(kind)}")
    return record


def _name(kind: int) -> str:
    return _TYPES[kind].partition(".")[2]


def _module(kind: int) -> ModuleType:
    return import_module(f"{__name__}.{_TYPES[kind].partition('.')[0]}")


@cache
def _writer(kind: int) -> tuple[int, Write]:
    """Return the newest version and its writer."""
    module = _module(kind)
    version = newest_version(module.FIELDS[kind])
    return version, compile_writer(layout_of(module.FIELDS[kind], version), module.CLASSES)


@cache
def _reader(kind: int, version: int) -> ReadFrame:
    module = _module(kind) if kind in _TYPES else None
    if module is None or version > newest_version(module.FIELDS[kind]):
        raise UnknownMetadataRecord(kind, version)
    return compile_reader(layout_of(module.FIELDS[kind], version), module.CLASSES, compiler=_RecordCompiler)


class _RecordCompiler(ReaderCompiler):
    """Compiles readers that share equal ids, and arrays of ids or numbers: thousands of partitions have the same."""

    # Records come from the log. A long config value must not make the log unreadable.
    longest_string = 0x7FFFFFFF

    def _uuid(self, value: str) -> str:
        self._scope["id_of"] = _id_of
        return f"id_of({value})"

    def _items(self, spec: FieldSpec, to: str) -> list[str]:
        if spec.kafka_type not in _SHARED:
            return super()._items(spec, to)
        size, make = _SHARED[spec.kafka_type]
        self._scope[f"make_{spec.kafka_type}"] = make
        lines = [f"n *= {size}", "if n > end - p:", "    short()", f"{to} = make_{spec.kafka_type}(b[p:p + n])"]
        return [*lines, "p += n"]


# In a request, the zero id means no id. Here it stands for an unassigned directory.
@lru_cache(maxsize=1024)
def _id_of(data: bytes) -> UUID:
    return UUID(bytes=data)


@lru_cache(maxsize=1024)
def _ids_of(data: bytes) -> tuple[UUID, ...]:
    return tuple(_id_of(data[place : place + _ID_BYTES]) for place in range(0, len(data), _ID_BYTES))


@lru_cache(maxsize=1024)
def _numbers_of(data: bytes) -> tuple[int, ...]:
    return unpack(f">{len(data) // _NUMBER_BYTES}i", data)


_ID_BYTES = 16
_NUMBER_BYTES = 4
_SHARED: dict[str | None, tuple[int, Any]] = {"uuid": (_ID_BYTES, _ids_of), "int32": (_NUMBER_BYTES, _numbers_of)}
