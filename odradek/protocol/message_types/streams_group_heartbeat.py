"""StreamsGroupHeartbeat up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class KeyValue(NamedTuple):
    """A struct of the StreamsGroupHeartbeat request."""

    key: str = ""
    value: str = ""


class TopicInfo(NamedTuple):
    """A struct of the StreamsGroupHeartbeat request."""

    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: Sequence[KeyValue] = ()


class CopartitionGroup(NamedTuple):
    """A struct of the StreamsGroupHeartbeat request."""

    source_topics: Sequence[int] = ()
    source_topic_regex: Sequence[int] = ()
    repartition_source_topics: Sequence[int] = ()


class Subtopology(NamedTuple):
    """A struct of the StreamsGroupHeartbeat request."""

    subtopology_id: str = ""
    source_topics: Sequence[str] = ()
    source_topic_regex: Sequence[str] = ()
    state_changelog_topics: Sequence[TopicInfo] = ()
    repartition_sink_topics: Sequence[str] = ()
    repartition_source_topics: Sequence[TopicInfo] = ()
    copartition_groups: Sequence[CopartitionGroup] = ()


class Topology(NamedTuple):
    """A struct of the StreamsGroupHeartbeat request."""

    epoch: int = 0
    subtopologies: Sequence[Subtopology] = ()


class RequestTaskIds(NamedTuple):
    """A struct of the StreamsGroupHeartbeat request."""

    subtopology_id: str = ""
    partitions: Sequence[int] = ()


class RequestEndpoint(NamedTuple):
    """A struct of the StreamsGroupHeartbeat request."""

    host: str = ""
    port: int = 0


class TaskOffset(NamedTuple):
    """A struct of the StreamsGroupHeartbeat request."""

    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0


class StreamsGroupHeartbeatRequest(NamedTuple):
    """The StreamsGroupHeartbeat request."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    endpoint_information_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: Topology | None = None
    active_tasks: Sequence[RequestTaskIds] | None = None
    standby_tasks: Sequence[RequestTaskIds] | None = None
    warmup_tasks: Sequence[RequestTaskIds] | None = None
    process_id: str | None = None
    user_endpoint: RequestEndpoint | None = None
    client_tags: Sequence[KeyValue] | None = None
    task_offsets: Sequence[TaskOffset] | None = None
    task_end_offsets: Sequence[TaskOffset] | None = None
    shutdown_application: bool = False


class Status(NamedTuple):
    """A struct of the StreamsGroupHeartbeat response."""

    status_code: int = 0
    status_detail: str = ""


class TaskIds(NamedTuple):
    """A struct of the StreamsGroupHeartbeat response."""

    subtopology_id: str = ""
    partitions: Sequence[int] = ()


class Endpoint(NamedTuple):
    """A struct of the StreamsGroupHeartbeat response."""

    host: str = ""
    port: int = 0


class TopicPartition(NamedTuple):
    """A struct of the StreamsGroupHeartbeat response."""

    topic: str = ""
    partitions: Sequence[int] = ()


class EndpointToPartitions(NamedTuple):
    """A struct of the StreamsGroupHeartbeat response."""

    user_endpoint: Endpoint = Endpoint()
    active_partitions: Sequence[TopicPartition] = ()
    standby_partitions: Sequence[TopicPartition] = ()


class StreamsGroupHeartbeatResponse(NamedTuple):
    """The StreamsGroupHeartbeat response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    task_offset_interval_ms: int = 0
    acceptable_recovery_lag: int = -1
    status: Sequence[Status] | None = ()
    active_tasks: Sequence[TaskIds] | None = None
    standby_tasks: Sequence[TaskIds] | None = None
    warmup_tasks: Sequence[TaskIds] | None = None
    topology_description_required: bool = False
    endpoint_information_epoch: int = 0
    partitions_by_user_endpoint: Sequence[EndpointToPartitions] | None = None
    acceptable_recovery_lag_legacy: int = 0


REQUEST: Final[dict[str, type[Any]]] = {
    "KeyValue": KeyValue,
    "TopicInfo": TopicInfo,
    "CopartitionGroup": CopartitionGroup,
    "Subtopology": Subtopology,
    "Topology": Topology,
    "TaskIds": RequestTaskIds,
    "Endpoint": RequestEndpoint,
    "TaskOffset": TaskOffset,
    "StreamsGroupHeartbeatRequest": StreamsGroupHeartbeatRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "Status": Status,
    "TaskIds": TaskIds,
    "Endpoint": Endpoint,
    "TopicPartition": TopicPartition,
    "EndpointToPartitions": EndpointToPartitions,
    "StreamsGroupHeartbeatResponse": StreamsGroupHeartbeatResponse,
}

REQUEST_FIELDS: Final = """
StreamsGroupHeartbeatRequest 0-1 flexible 0+
 group_id string
 member_id string
 member_epoch int32
 endpoint_information_epoch int32
 instance_id string null = null
 rack_id string null = null
 rebalance_timeout_ms int32 = -1
 topology Topology null = null
  epoch int32
  subtopologies []Subtopology
   subtopology_id string
   source_topics []string
   source_topic_regex []string
   state_changelog_topics []TopicInfo
    name string
    partitions int32
    replication_factor int16
    topic_configs []KeyValue
     key string
     value string
   repartition_sink_topics []string
   repartition_source_topics []TopicInfo
    name string
    partitions int32
    replication_factor int16
    topic_configs []KeyValue
     key string
     value string
   copartition_groups []CopartitionGroup
    source_topics []int16
    source_topic_regex []int16
    repartition_source_topics []int16
 active_tasks []TaskIds null = null
  subtopology_id string
  partitions []int32
 standby_tasks []TaskIds null = null
  subtopology_id string
  partitions []int32
 warmup_tasks []TaskIds null = null
  subtopology_id string
  partitions []int32
 process_id string null = null
 user_endpoint Endpoint null = null
  host string
  port uint16
 client_tags []KeyValue null = null
  key string
  value string
 task_offsets []TaskOffset null = null
  subtopology_id string
  partition int32
  offset int64
 task_end_offsets []TaskOffset null = null
  subtopology_id string
  partition int32
  offset int64
 shutdown_application bool = false
"""
RESPONSE_FIELDS: Final = """
StreamsGroupHeartbeatResponse 0-1 flexible 0+
 throttle_time_ms int32
 error_code int16
 error_message string null = null
 member_id string
 member_epoch int32
 heartbeat_interval_ms int32
 acceptable_recovery_lag_legacy int32 -0
 task_offset_interval_ms int32
 acceptable_recovery_lag int64 1+ = -1
 status []Status null
  status_code int8
  status_detail string
 active_tasks []TaskIds null = null
  subtopology_id string
  partitions []int32
 standby_tasks []TaskIds null = null
  subtopology_id string
  partitions []int32
 warmup_tasks []TaskIds null = null
  subtopology_id string
  partitions []int32
 topology_description_required bool 1+ = false
 endpoint_information_epoch int32
 partitions_by_user_endpoint []EndpointToPartitions null = null
  user_endpoint Endpoint
   host string
   port uint16
  active_partitions []TopicPartition
   topic string
   partitions []int32
  standby_partitions []TopicPartition
   topic string
   partitions []int32
"""
