"""Cluster metadata as records: every kind that Apache Kafka 4.3 has, in its KRaft schemas.

Topics, ids, configs, features and blocks of producer ids are values of records in `__cluster_metadata` (KIP-631), so that
``kafka-dump-log --cluster-metadata-decoder`` reads odradek's log, and odradek reads Kafka's. A value is

    unsigned varint frame version (1) | unsigned varint record type (api key) | unsigned varint version | flexible message

The classes are dataclasses with the wire type of a field in its metadata. The newest version of each record is written, every
version is read; fields that an older version lacks have their defaults.

Source: metadata/src/main/resources/common/metadata/*.json of Apache Kafka.
"""

from dataclasses import dataclass
from functools import cache
from importlib import import_module

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.metadata_records.base import MetadataRecord
from odradek.protocol.metadata_records.cluster import ConfigRecord, FeatureLevelRecord, ProducerIdsRecord
from odradek.protocol.metadata_records.layouts import compile_record_reader, layout
from odradek.protocol.metadata_records.topics import PartitionRecord, RemoveTopicRecord, TopicRecord
from odradek.protocol.readers import ReadFrame
from odradek.protocol.varint import read_uvarint
from odradek.protocol.writers import Write, compile_writer

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
    "record_types",
]

FRAME_VERSION = 1

# The module and class of each record type, by its api key. Building a class takes a third of a millisecond, so the modules of
# types that odradek does not write are imported only if a log has one of them.
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
}


class UnknownMetadataRecord(MalformedMessage):
    """A record of a type or version that Apache Kafka 4.3 does not have; a newer Kafka may have written it."""

    def __init__(self, api_key: int, version: int) -> None:
        super().__init__(f"a metadata record of unknown type {api_key}, version {version}")


@dataclass(slots=True)
class _Reader:
    """Reads one version of a record type."""

    read: ReadFrame
    # Ids and arrays: thousands of partitions have the same.
    shared_fields: tuple[str, ...]
    last: MetadataRecord | None = None


def record_types() -> list[type[MetadataRecord]]:
    """The class of every record type."""
    return [_record_type(api_key) for api_key in _TYPES]


def encode(record: MetadataRecord) -> bytes:
    """The value of the log record for ``record``."""
    chunks = [bytes((FRAME_VERSION, record.__api_key__, record.__version__))]  # each below 128: a varint of one byte
    _writer(record.__api_key__)(chunks.append, record)
    return b"".join(chunks)


def decode(value: bytes) -> MetadataRecord:
    """The metadata record in a log record's value.

    Raises MalformedMessage, and UnknownMetadataRecord, a subclass of it.
    """
    frame_version, position = read_uvarint(value, 0)
    if frame_version != FRAME_VERSION:
        raise MalformedMessage(f"a metadata record of frame version {frame_version}, known is {FRAME_VERSION}")
    api_key, position = read_uvarint(value, position)
    version, position = read_uvarint(value, position)
    reader = _reader(api_key, version)
    try:
        record: MetadataRecord
        record, end = reader.read(value, position)
    except MalformedMessage as error:
        raise MalformedMessage(f"a {_TYPES[api_key].partition('.')[2]} cannot be read: {error.reason}") from None
    if end != len(value):
        raise MalformedMessage(f"{len(value) - end} bytes follow a {_TYPES[api_key].partition('.')[2]}")
    if reader.last is not None:
        _share(record, reader.last, reader.shared_fields)
    reader.last = record
    return record


def _share(record: MetadataRecord, last: MetadataRecord, names: tuple[str, ...]) -> None:
    """Replace the values of ``record`` by those of ``last`` where they are equal."""
    for name in names:
        value, known = getattr(record, name), getattr(last, name)
        if value is not known and value == known:
            object.__setattr__(record, name, known)


def _record_type(api_key: int) -> type[MetadataRecord]:
    module, _, name = _TYPES[api_key].partition(".")
    record_type: type[MetadataRecord] = getattr(import_module(f"{__name__}.{module}"), name)
    return record_type


@cache
def _writer(api_key: int) -> Write:
    record_type = _record_type(api_key)
    return compile_writer(layout(record_type, record_type.__version__), {})


@cache
def _reader(api_key: int, version: int) -> _Reader:
    record_type = _record_type(api_key) if api_key in _TYPES else None
    if record_type is None or version > record_type.__version__:
        raise UnknownMetadataRecord(api_key, version)
    shared = [
        spec.name
        for spec in layout(record_type, version).fields
        if spec.kafka_type == "uuid" or (spec.is_array and spec.kafka_type == "int32")
    ]
    return _Reader(compile_record_reader(record_type, version), tuple(shared))
