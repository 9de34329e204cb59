"""Metadata up to version 13. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class MetadataRequestTopic(NamedTuple):
    """Part of the Metadata request."""

    topic_id: UUID | None = None
    name: str | None = None


class MetadataRequest(NamedTuple):
    """The Metadata request."""

    topics: Sequence[MetadataRequestTopic] | None = ()
    allow_auto_topic_creation: bool = True
    include_topic_authorized_operations: bool = False
    include_cluster_authorized_operations: bool = False


class MetadataResponseBroker(NamedTuple):
    """Part of the Metadata response."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class MetadataResponsePartition(NamedTuple):
    """Part of the Metadata response."""

    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: Sequence[int] = ()
    isr_nodes: Sequence[int] = ()
    offline_replicas: Sequence[int] = ()


class MetadataResponseTopic(NamedTuple):
    """Part of the Metadata response."""

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
