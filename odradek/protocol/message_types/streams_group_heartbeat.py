"""StreamsGroupHeartbeat up to version 0. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class KeyValue(NamedTuple):
    """Part of the StreamsGroupHeartbeat request."""

    key: str = ""
    value: str = ""


class TopicInfo(NamedTuple):
    """Part of the StreamsGroupHeartbeat request."""

    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: Sequence[KeyValue] = ()


class CopartitionGroup(NamedTuple):
    """Part of the StreamsGroupHeartbeat request."""

    source_topics: Sequence[int] = ()
    source_topic_regex: Sequence[int] = ()
    repartition_source_topics: Sequence[int] = ()


class Subtopology(NamedTuple):
    """Part of the StreamsGroupHeartbeat request."""

    subtopology_id: str = ""
    source_topics: Sequence[str] = ()
    source_topic_regex: Sequence[str] = ()
    state_changelog_topics: Sequence[TopicInfo] = ()
    repartition_sink_topics: Sequence[str] = ()
    repartition_source_topics: Sequence[TopicInfo] = ()
    copartition_groups: Sequence[CopartitionGroup] = ()


class Topology(NamedTuple):
    """Part of the StreamsGroupHeartbeat request."""

    epoch: int = 0
    subtopologies: Sequence[Subtopology] = ()


class RequestTaskIds(NamedTuple):
    """Part of the StreamsGroupHeartbeat request."""

    subtopology_id: str = ""
    partitions: Sequence[int] = ()


class RequestEndpoint(NamedTuple):
    """Part of the StreamsGroupHeartbeat request."""

    host: str = ""
    port: int = 0


class TaskOffset(NamedTuple):
    """Part of the StreamsGroupHeartbeat request."""

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
    active_tasks: Sequence[RequestTaskIds] | None = ()
    standby_tasks: Sequence[RequestTaskIds] | None = ()
    warmup_tasks: Sequence[RequestTaskIds] | None = ()
    process_id: str | None = None
    user_endpoint: RequestEndpoint | None = None
    client_tags: Sequence[KeyValue] | None = ()
    task_offsets: Sequence[TaskOffset] | None = ()
    task_end_offsets: Sequence[TaskOffset] | None = ()
    shutdown_application: bool = False


class Status(NamedTuple):
    """Part of the StreamsGroupHeartbeat response."""

    status_code: int = 0
    status_detail: str = ""


class TaskIds(NamedTuple):
    """Part of the StreamsGroupHeartbeat response."""

    subtopology_id: str = ""
    partitions: Sequence[int] = ()


class Endpoint(NamedTuple):
    """Part of the StreamsGroupHeartbeat response."""

    host: str = ""
    port: int = 0


class TopicPartition(NamedTuple):
    """Part of the StreamsGroupHeartbeat response."""

    topic: str = ""
    partitions: Sequence[int] = ()


class EndpointToPartitions(NamedTuple):
    """Part of the StreamsGroupHeartbeat response."""

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
    acceptable_recovery_lag: int = 0
    task_offset_interval_ms: int = 0
    status: Sequence[Status] | None = ()
    active_tasks: Sequence[TaskIds] | None = ()
    standby_tasks: Sequence[TaskIds] | None = ()
    warmup_tasks: Sequence[TaskIds] | None = ()
    endpoint_information_epoch: int = 0
    partitions_by_user_endpoint: Sequence[EndpointToPartitions] | None = ()


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
