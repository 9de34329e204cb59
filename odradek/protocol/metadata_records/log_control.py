"""Metadata records that a Kafka controller writes about the metadata log itself: idle records and transactions of records."""

from dataclasses import dataclass, field
from typing import ClassVar

from odradek.protocol.metadata_records.base import INT8, STRING, MetadataRecord, tagged


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOpRecord(MetadataRecord):
    """No change: a Kafka controller appends one from time to time, so that the metadata log's high watermark moves."""

    __api_key__: ClassVar[int] = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkMigrationStateRecord(MetadataRecord):
    """The progress of a migration from ZooKeeper (KIP-866)."""

    __api_key__: ClassVar[int] = 21
    zk_migration_state: int = field(metadata=INT8)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginTransactionRecord(MetadataRecord):
    """The records from here to an EndTransactionRecord take effect together, or not at all (KIP-868)."""

    __api_key__: ClassVar[int] = 23
    name: str | None = field(metadata=tagged(STRING, 0), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransactionRecord(MetadataRecord):
    """The records of the open metadata transaction take effect."""

    __api_key__: ClassVar[int] = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortTransactionRecord(MetadataRecord):
    """The records of the open metadata transaction never take effect."""

    __api_key__: ClassVar[int] = 25
    reason: str | None = field(metadata=tagged(STRING, 0), default=None)
