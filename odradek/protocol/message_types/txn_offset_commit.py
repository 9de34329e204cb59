"""TxnOffsetCommit up to version 6. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class TxnOffsetCommitRequestPartition(NamedTuple):
    """A struct of the TxnOffsetCommit request."""

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = None


class TxnOffsetCommitRequestTopic(NamedTuple):
    """A struct of the TxnOffsetCommit request."""

    topic_id: UUID | None = None
    partitions: Sequence[TxnOffsetCommitRequestPartition] = ()
    name: str = ""


class TxnOffsetCommitRequest(NamedTuple):
    """The TxnOffsetCommit request."""

    transactional_id: str = ""
    group_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: Sequence[TxnOffsetCommitRequestTopic] = ()


class TxnOffsetCommitResponsePartition(NamedTuple):
    """A struct of the TxnOffsetCommit response."""

    partition_index: int = 0
    error_code: int = 0


class TxnOffsetCommitResponseTopic(NamedTuple):
    """A struct of the TxnOffsetCommit response."""

    topic_id: UUID | None = None
    partitions: Sequence[TxnOffsetCommitResponsePartition] = ()
    name: str = ""


class TxnOffsetCommitResponse(NamedTuple):
    """The TxnOffsetCommit response."""

    throttle_time_ms: int = 0
    topics: Sequence[TxnOffsetCommitResponseTopic] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "TxnOffsetCommitRequestPartition": TxnOffsetCommitRequestPartition,
    "TxnOffsetCommitRequestTopic": TxnOffsetCommitRequestTopic,
    "TxnOffsetCommitRequest": TxnOffsetCommitRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "TxnOffsetCommitResponsePartition": TxnOffsetCommitResponsePartition,
    "TxnOffsetCommitResponseTopic": TxnOffsetCommitResponseTopic,
    "TxnOffsetCommitResponse": TxnOffsetCommitResponse,
}

REQUEST_FIELDS: Final = """
TxnOffsetCommitRequest 0-6 flexible 3+
 transactional_id string
 group_id string
 producer_id int64
 producer_epoch int16
 generation_id_or_member_epoch int32 3+ = -1
 member_id string 3+ = ""
 group_instance_id string 3+ null 3+ = null
 topics []TxnOffsetCommitRequestTopic
  name string -5
  topic_id uuid 6+
  partitions []TxnOffsetCommitRequestPartition
   partition_index int32
   committed_offset int64
   committed_leader_epoch int32 2+ = -1
   committed_metadata string null
"""
RESPONSE_FIELDS: Final = """
TxnOffsetCommitResponse 0-6 flexible 3+
 throttle_time_ms int32
 topics []TxnOffsetCommitResponseTopic
  name string -5
  topic_id uuid 6+
  partitions []TxnOffsetCommitResponsePartition
   partition_index int32
   error_code int16
"""
