"""Metadata records that change partitions: their leader, in-sync replicas or directories."""

from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

from odradek.protocol.metadata_records.base import INT8, INT32, STRING, UUID_, MetadataRecord, tagged

NO_LEADER_CHANGE = -2
NO_RECOVERY_STATE_CHANGE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChangeRecord(MetadataRecord):
    """A partition changes; a null field (``leader``: NO_LEADER_CHANGE) stays the same.

    Each change raises the partition epoch by one. A change with a leader raises the leader epoch, too.
    """

    __version__: ClassVar[int] = 2
    __api_key__: ClassVar[int] = 5
    partition_id: int = field(metadata=INT32, default=-1)
    topic_id: UUID = field(metadata=UUID_)
    isr: tuple[int, ...] | None = field(metadata=tagged(INT32, 0), default=None)
    leader: int = field(metadata=tagged(INT32, 1), default=NO_LEADER_CHANGE)
    replicas: tuple[int, ...] | None = field(metadata=tagged(INT32, 2), default=None)
    removing_replicas: tuple[int, ...] | None = field(metadata=tagged(INT32, 3), default=None)
    adding_replicas: tuple[int, ...] | None = field(metadata=tagged(INT32, 4), default=None)
    leader_recovery_state: int = field(metadata=tagged(INT8, 5), default=NO_RECOVERY_STATE_CHANGE)
    eligible_leader_replicas: tuple[int, ...] | None = field(metadata=tagged(INT32, 6, since=2), default=None)
    last_known_elr: tuple[int, ...] | None = field(metadata=tagged(INT32, 7, since=2), default=None)
    directories: tuple[UUID, ...] | None = field(metadata=tagged(UUID_, 8, since=1), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearElrRecord(MetadataRecord):
    """The eligible leader replicas of a topic are cleared, or those of every topic if the name is empty (KIP-966)."""

    __api_key__: ClassVar[int] = 28
    topic_name: str = field(metadata=STRING)
