"""ShareFetch up to version 2. Written by tools/generate_messages.py."""

from collections.abc import Sequence, Sized
from typing import Any, Final, NamedTuple
from uuid import UUID


class AcknowledgementBatch(NamedTuple):
    """A struct of the ShareFetch request."""

    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: Sequence[int] = ()


class FetchPartition(NamedTuple):
    """A struct of the ShareFetch request."""

    partition_index: int = 0
    acknowledgement_batches: Sequence[AcknowledgementBatch] = ()


class FetchTopic(NamedTuple):
    """A struct of the ShareFetch request."""

    topic_id: UUID | None = None
    partitions: Sequence[FetchPartition] = ()


class ForgottenTopic(NamedTuple):
    """A struct of the ShareFetch request."""

    topic_id: UUID | None = None
    partitions: Sequence[int] = ()


class ShareFetchRequest(NamedTuple):
    """The ShareFetch request."""

    group_id: str | None = None
    member_id: str | None = None
    share_session_epoch: int = 0
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    max_records: int = 0
    batch_size: int = 0
    share_acquire_mode: int = 0
    is_renew_ack: bool = False
    topics: Sequence[FetchTopic] = ()
    forgotten_topics_data: Sequence[ForgottenTopic] = ()


class LeaderIdAndEpoch(NamedTuple):
    """A struct of the ShareFetch response."""

    leader_id: int = 0
    leader_epoch: int = 0


class AcquiredRecords(NamedTuple):
    """A struct of the ShareFetch response."""

    first_offset: int = 0
    last_offset: int = 0
    delivery_count: int = 0


class PartitionData(NamedTuple):
    """A struct of the ShareFetch response."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    acknowledge_error_code: int = 0
    acknowledge_error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    records: Sized | None = None
    acquired_records: Sequence[AcquiredRecords] = ()


class ShareFetchableTopicResponse(NamedTuple):
    """A struct of the ShareFetch response."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionData] = ()


class NodeEndpoint(NamedTuple):
    """A struct of the ShareFetch response."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class ShareFetchResponse(NamedTuple):
    """The ShareFetch response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: Sequence[ShareFetchableTopicResponse] = ()
    node_endpoints: Sequence[NodeEndpoint] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "AcknowledgementBatch": AcknowledgementBatch,
    "FetchPartition": FetchPartition,
    "FetchTopic": FetchTopic,
    "ForgottenTopic": ForgottenTopic,
    "ShareFetchRequest": ShareFetchRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "LeaderIdAndEpoch": LeaderIdAndEpoch,
    "AcquiredRecords": AcquiredRecords,
    "PartitionData": PartitionData,
    "ShareFetchableTopicResponse": ShareFetchableTopicResponse,
    "NodeEndpoint": NodeEndpoint,
    "ShareFetchResponse": ShareFetchResponse,
}

REQUEST_FIELDS: Final = """
ShareFetchRequest 1-2 flexible 0+
 group_id string null = null
 member_id string null
 share_session_epoch int32
 max_wait_ms int32
 min_bytes int32
 max_bytes int32 = 2147483647
 max_records int32
 batch_size int32
 share_acquire_mode int8 2+ = 0
 is_renew_ack bool 2+ = false
 topics []FetchTopic
  topic_id uuid
  partitions []FetchPartition
   partition_index int32
   acknowledgement_batches []AcknowledgementBatch
    first_offset int64
    last_offset int64
    acknowledge_types []int8
 forgotten_topics_data []ForgottenTopic
  topic_id uuid
  partitions []int32
"""
RESPONSE_FIELDS: Final = """
ShareFetchResponse 1-2 flexible 0+
 throttle_time_ms int32
 error_code int16
 error_message string null = null
 acquisition_lock_timeout_ms int32
 responses []ShareFetchableTopicResponse
  topic_id uuid
  partitions []PartitionData
   partition_index int32
   error_code int16
   error_message string null = null
   acknowledge_error_code int16
   acknowledge_error_message string null = null
   current_leader LeaderIdAndEpoch
    leader_id int32
    leader_epoch int32
   records records
   acquired_records []AcquiredRecords
    first_offset int64
    last_offset int64
    delivery_count int16
 node_endpoints []NodeEndpoint
  node_id int32
  host string
  port int32
  rack string null = null
"""
