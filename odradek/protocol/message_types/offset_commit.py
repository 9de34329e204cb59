"""OffsetCommit up to version 10. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class OffsetCommitRequestPartition(NamedTuple):
    """A struct of the OffsetCommit request."""

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = None


class OffsetCommitRequestTopic(NamedTuple):
    """A struct of the OffsetCommit request."""

    topic_id: UUID | None = None
    partitions: Sequence[OffsetCommitRequestPartition] = ()
    name: str = ""


class OffsetCommitRequest(NamedTuple):
    """The OffsetCommit request."""

    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: Sequence[OffsetCommitRequestTopic] = ()
    retention_time_ms: int = -1


class OffsetCommitResponsePartition(NamedTuple):
    """A struct of the OffsetCommit response."""

    partition_index: int = 0
    error_code: int = 0


class OffsetCommitResponseTopic(NamedTuple):
    """A struct of the OffsetCommit response."""

    topic_id: UUID | None = None
    partitions: Sequence[OffsetCommitResponsePartition] = ()
    name: str = ""


class OffsetCommitResponse(NamedTuple):
    """The OffsetCommit response."""

    throttle_time_ms: int = 0
    topics: Sequence[OffsetCommitResponseTopic] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "OffsetCommitRequestPartition": OffsetCommitRequestPartition,
    "OffsetCommitRequestTopic": OffsetCommitRequestTopic,
    "OffsetCommitRequest": OffsetCommitRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "OffsetCommitResponsePartition": OffsetCommitResponsePartition,
    "OffsetCommitResponseTopic": OffsetCommitResponseTopic,
    "OffsetCommitResponse": OffsetCommitResponse,
}

REQUEST_FIELDS: Final = """
OffsetCommitRequest 2-10 flexible 8+
 group_id string
 generation_id_or_member_epoch int32 = -1
 member_id string
 group_instance_id string 7+ null 7+ = null
 retention_time_ms int64 -4 = -1
 topics []OffsetCommitRequestTopic
  name string -9
  topic_id uuid 10+
  partitions []OffsetCommitRequestPartition
   partition_index int32
   committed_offset int64
   committed_leader_epoch int32 6+ = -1
   committed_metadata string null
"""
RESPONSE_FIELDS: Final = """
OffsetCommitResponse 2-10 flexible 8+
 throttle_time_ms int32 3+
 topics []OffsetCommitResponseTopic
  name string -9
  topic_id uuid 10+
  partitions []OffsetCommitResponsePartition
   partition_index int32
   error_code int16
"""
