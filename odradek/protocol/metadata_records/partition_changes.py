"""Metadata records of changes of partitions: leader, replicas, directories. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple
from uuid import UUID

from odradek.protocol.metadata_records.base import ZERO_ID


class PartitionChangeRecord(NamedTuple):
    """A partition changes. What is null, or has its default, stays the same.

    Each change raises the partition epoch by one. A change with a leader raises the leader epoch, too.
    """

    partition_id: int = -1
    topic_id: UUID = ZERO_ID
    isr: tuple[int, ...] | None = None
    leader: int = -2
    replicas: tuple[int, ...] | None = None
    removing_replicas: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] | None = None
    leader_recovery_state: int = -1
    directories: tuple[UUID, ...] | None = None
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


class ClearElrRecord(NamedTuple):
    """The eligible leader replicas of a topic are cleared, or of all if the name is empty (KIP-966)."""

    topic_name: str = ""


CLASSES: Final[dict[str, type[Any]]] = {
    "PartitionChangeRecord": PartitionChangeRecord,
    "ClearElrRecord": ClearElrRecord,
}
FIELDS: Final[dict[int, str]] = {
    5: """
PartitionChangeRecord 0-2 flexible 0+
 partition_id int32 = -1
 topic_id uuid
 isr []int32 null tag 0 = null
 leader int32 tag 1 = -2
 replicas []int32 null tag 2 = null
 removing_replicas []int32 null tag 3 = null
 adding_replicas []int32 null tag 4 = null
 leader_recovery_state int8 tag 5 = -1
 directories []uuid 1+ null 1+ tag 8 = null
 eligible_leader_replicas []int32 2+ null 2+ tag 6 = null
 last_known_elr []int32 2+ null 2+ tag 7 = null
""",
    28: """
ClearElrRecord 0 flexible 0+
 topic_name string
""",
}
