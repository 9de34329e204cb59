"""Metadata up to version 13. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class MetadataRequestTopic(NamedTuple):
    """A struct of the Metadata request."""

    topic_id: UUID | None = None
    name: str | None = None


class MetadataRequest(NamedTuple):
    """The Metadata request."""

    topics: Sequence[MetadataRequestTopic] | None = ()
    allow_auto_topic_creation: bool = True
    include_topic_authorized_operations: bool = False
    include_cluster_authorized_operations: bool = False


class MetadataResponseBroker(NamedTuple):
    """A struct of the Metadata response."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class MetadataResponsePartition(NamedTuple):
    """A struct of the Metadata response."""

    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: Sequence[int] = ()
    isr_nodes: Sequence[int] = ()
    offline_replicas: Sequence[int] = ()


class MetadataResponseTopic(NamedTuple):
    """A struct of the Metadata response."""

    error_code: int = 0
    name: str | None = None
    topic_id: UUID | None = None
    is_internal: bool = False
    partitions: Sequence[MetadataResponsePartition] = ()
    topic_authorized_operations: int = -2147483648


class MetadataResponse(NamedTuple):
    """The Metadata response."""

    throttle_time_ms: int = 0
    brokers: Sequence[MetadataResponseBroker] = ()
    cluster_id: str | None = None
    controller_id: int = -1
    topics: Sequence[MetadataResponseTopic] = ()
    error_code: int = 0
    cluster_authorized_operations: int = -2147483648


REQUEST: Final[dict[str, type[Any]]] = {
    "MetadataRequestTopic": MetadataRequestTopic,
    "MetadataRequest": MetadataRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "MetadataResponseBroker": MetadataResponseBroker,
    "MetadataResponsePartition": MetadataResponsePartition,
    "MetadataResponseTopic": MetadataResponseTopic,
    "MetadataResponse": MetadataResponse,
}

REQUEST_FIELDS: Final = """
MetadataRequest 0-13 flexible 9+
 topics []MetadataRequestTopic null 1+
  topic_id uuid 10+
  name string null 10+
 allow_auto_topic_creation bool 4+ = true
 include_cluster_authorized_operations bool 8-10
 include_topic_authorized_operations bool 8+
"""
RESPONSE_FIELDS: Final = """
MetadataResponse 0-13 flexible 9+
 throttle_time_ms int32 3+
 brokers []MetadataResponseBroker
  node_id int32
  host string
  port int32
  rack string 1+ null 1+ = null
 cluster_id string 2+ null 2+ = null
 controller_id int32 1+ = -1
 topics []MetadataResponseTopic
  error_code int16
  name string null 12+
  topic_id uuid 10+
  is_internal bool 1+ = false
  partitions []MetadataResponsePartition
   error_code int16
   partition_index int32
   leader_id int32
   leader_epoch int32 7+ = -1
   replica_nodes []int32
   isr_nodes []int32
   offline_replicas []int32 5+
  topic_authorized_operations int32 8+ = -2147483648
 cluster_authorized_operations int32 8-10 = -2147483648
 error_code int16 13+
"""
