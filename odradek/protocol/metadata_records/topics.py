"""Metadata records of topics and their partitions."""

from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

from odradek.protocol.metadata_records.base import INT8, INT32, STRING, UUID_, MetadataRecord, since, tagged


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord(MetadataRecord):
    """A topic is created; its partitions follow in records of the same batch."""

    __api_key__: ClassVar[int] = 2
    name: str = field(metadata=STRING)
    topic_id: UUID = field(metadata=UUID_)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord(MetadataRecord):
    """A partition of a topic: its replicas (broker ids), leader, epochs, and the directory id of each replica.

    ``eligible_leader_replicas`` and ``last_known_elr`` (KIP-966) are null: the in-sync set never shrinks here.
    """

    __version__: ClassVar[int] = 2
    __api_key__: ClassVar[int] = 3
    partition_id: int = field(metadata=INT32, default=-1)
    topic_id: UUID = field(metadata=UUID_)
    replicas: tuple[int, ...] = field(metadata=INT32)
    isr: tuple[int, ...] = field(metadata=INT32)
    removing_replicas: tuple[int, ...] = field(metadata=INT32, default=())
    adding_replicas: tuple[int, ...] = field(metadata=INT32, default=())
    leader: int = field(metadata=INT32, default=-1)
    leader_recovery_state: int = field(metadata=tagged(INT8, 0), default=0)
    leader_epoch: int = field(metadata=INT32, default=-1)
    partition_epoch: int = field(metadata=INT32, default=-1)
    directories: tuple[UUID, ...] = field(metadata=since(UUID_, 1), default=())
    eligible_leader_replicas: tuple[int, ...] | None = field(metadata=tagged(INT32, 1, since=2), default=None)
    last_known_elr: tuple[int, ...] | None = field(metadata=tagged(INT32, 2, since=2), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTopicRecord(MetadataRecord):
    """A topic is removed, with its partitions and its configs."""

    __api_key__: ClassVar[int] = 9
    topic_id: UUID = field(metadata=UUID_)
