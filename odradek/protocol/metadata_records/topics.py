"""Metadata records of topics and their partitions. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple
from uuid import UUID

from odradek.protocol.metadata_records.base import ZERO_ID


class TopicRecord(NamedTuple):
    """A topic is created; its partitions follow in records of the same batch."""

    name: str = ""
    topic_id: UUID = ZERO_ID


class PartitionRecord(NamedTuple):
    """A partition: its replicas (broker ids), leader, epochs, and the directory id of each replica."""

    partition_id: int = -1
    topic_id: UUID = ZERO_ID
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader: int = -1
    leader_recovery_state: int = 0
    leader_epoch: int = -1
    partition_epoch: int = -1
    directories: tuple[UUID, ...] = ()
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


class RemoveTopicRecord(NamedTuple):
    """A topic is removed, with its partitions and its configs."""

    topic_id: UUID = ZERO_ID


CLASSES: Final[dict[str, type[Any]]] = {
    "TopicRecord": TopicRecord,
    "PartitionRecord": PartitionRecord,
    "RemoveTopicRecord": RemoveTopicRecord,
}
FIELDS: Final[dict[int, str]] = {
    2: """
TopicRecord 0 flexible 0+
 name string
 topic_id uuid
""",
    3: """
PartitionRecord 0-2 flexible 0+
 partition_id int32 = -1
 topic_id uuid
 replicas []int32
 isr []int32
 removing_replicas []int32
 adding_replicas []int32
 leader int32 = -1
 leader_recovery_state int8 tag 0 = 0
 leader_epoch int32 = -1
 partition_epoch int32 = -1
 directories []uuid 1+
 eligible_leader_replicas []int32 2+ null 2+ tag 1 = null
 last_known_elr []int32 2+ null 2+ tag 2 = null
""",
    9: """
RemoveTopicRecord 0 flexible 0+
 topic_id uuid
""",
}
