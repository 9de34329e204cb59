"""FetchSnapshot up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence, Sized
from typing import Any, Final, NamedTuple
from uuid import UUID


class RequestSnapshotId(NamedTuple):
    """A struct of the FetchSnapshot request."""

    end_offset: int = 0
    epoch: int = 0


class RequestPartitionSnapshot(NamedTuple):
    """A struct of the FetchSnapshot request."""

    partition: int = 0
    current_leader_epoch: int = 0
    snapshot_id: RequestSnapshotId = RequestSnapshotId()
    position: int = 0
    replica_directory_id: UUID | None = None


class RequestTopicSnapshot(NamedTuple):
    """A struct of the FetchSnapshot request."""

    name: str = ""
    partitions: Sequence[RequestPartitionSnapshot] = ()


class FetchSnapshotRequest(NamedTuple):
    """The FetchSnapshot request."""

    cluster_id: str | None = None
    replica_id: int = -1
    max_bytes: int = 2147483647
    topics: Sequence[RequestTopicSnapshot] = ()


class SnapshotId(NamedTuple):
    """A struct of the FetchSnapshot response."""

    end_offset: int = 0
    epoch: int = 0


class LeaderIdAndEpoch(NamedTuple):
    """A struct of the FetchSnapshot response."""

    leader_id: int = 0
    leader_epoch: int = 0


class PartitionSnapshot(NamedTuple):
    """A struct of the FetchSnapshot response."""

    index: int = 0  # type: ignore[assignment]
    error_code: int = 0
    snapshot_id: SnapshotId = SnapshotId()
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    size: int = 0
    position: int = 0
    unaligned_records: Sized | None = None


class TopicSnapshot(NamedTuple):
    """A struct of the FetchSnapshot response."""

    name: str = ""
    partitions: Sequence[PartitionSnapshot] = ()


class NodeEndpoint(NamedTuple):
    """A struct of the FetchSnapshot response."""

    node_id: int = 0
    host: str = ""
    port: int = 0


class FetchSnapshotResponse(NamedTuple):
    """The FetchSnapshot response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    topics: Sequence[TopicSnapshot] = ()
    node_endpoints: Sequence[NodeEndpoint] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "SnapshotId": RequestSnapshotId,
    "PartitionSnapshot": RequestPartitionSnapshot,
    "TopicSnapshot": RequestTopicSnapshot,
    "FetchSnapshotRequest": FetchSnapshotRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "SnapshotId": SnapshotId,
    "LeaderIdAndEpoch": LeaderIdAndEpoch,
    "PartitionSnapshot": PartitionSnapshot,
    "TopicSnapshot": TopicSnapshot,
    "NodeEndpoint": NodeEndpoint,
    "FetchSnapshotResponse": FetchSnapshotResponse,
}

REQUEST_FIELDS: Final = """
FetchSnapshotRequest 0-1 flexible 0+
 cluster_id string null tag 0 = null
 replica_id int32 = -1
 max_bytes int32 = 2147483647
 topics []TopicSnapshot
  name string
  partitions []PartitionSnapshot
   partition int32
   current_leader_epoch int32
   snapshot_id SnapshotId
    end_offset int64
    epoch int32
   position int64
   replica_directory_id uuid 1+ tag 0
"""
RESPONSE_FIELDS: Final = """
FetchSnapshotResponse 0-1 flexible 0+
 throttle_time_ms int32
 error_code int16
 topics []TopicSnapshot
  name string
  partitions []PartitionSnapshot
   index int32
   error_code int16
   snapshot_id SnapshotId
    end_offset int64
    epoch int32
   current_leader LeaderIdAndEpoch tag 0
    leader_id int32
    leader_epoch int32
   size int64
   position int64
   unaligned_records records
 node_endpoints []NodeEndpoint 1+ tag 0
  node_id int32 1+
  host string 1+
  port uint16 1+
"""
