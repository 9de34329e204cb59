"""StreamsGroupDescribe up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class StreamsGroupDescribeRequest(NamedTuple):
    """The StreamsGroupDescribe request."""

    group_ids: Sequence[str] = ()
    include_authorized_operations: bool = False
    include_topology_description: bool = False


class KeyValue(NamedTuple):
    """A struct of the StreamsGroupDescribe response."""

    key: str = ""
    value: str = ""


class TopicInfo(NamedTuple):
    """A struct of the StreamsGroupDescribe response."""

    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: Sequence[KeyValue] = ()


class Subtopology(NamedTuple):
    """A struct of the StreamsGroupDescribe response."""

    subtopology_id: str = ""
    source_topics: Sequence[str] = ()
    repartition_sink_topics: Sequence[str] = ()
    state_changelog_topics: Sequence[TopicInfo] = ()
    repartition_source_topics: Sequence[TopicInfo] = ()


class Topology(NamedTuple):
    """A struct of the StreamsGroupDescribe response."""

    epoch: int = 0
    subtopologies: Sequence[Subtopology] | None = None


class Endpoint(NamedTuple):
    """A struct of the StreamsGroupDescribe response."""

    host: str = ""
    port: int = 0


class TaskOffset(NamedTuple):
    """A struct of the StreamsGroupDescribe response."""

    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0


class TaskIds(NamedTuple):
    """A struct of the StreamsGroupDescribe response."""

    subtopology_id: str = ""
    partitions: Sequence[int] = ()


class Assignment(NamedTuple):
    """A struct of the StreamsGroupDescribe response."""

    active_tasks: Sequence[TaskIds] = ()
    standby_tasks: Sequence[TaskIds] = ()
    warmup_tasks: Sequence[TaskIds] = ()


class Member(NamedTuple):
    """A struct of the StreamsGroupDescribe response."""

    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: Sequence[KeyValue] = ()
    task_offsets: Sequence[TaskOffset] = ()
    task_end_offsets: Sequence[TaskOffset] = ()
    assignment: Assignment = Assignment()
    target_assignment: Assignment = Assignment()
    is_classic: bool = False


class TopologyDescriptionNode(NamedTuple):
    """A struct of the StreamsGroupDescribe response."""

    name: str = ""
    node_type: int = 0
    source_topics: Sequence[str] = ()
    sink_topic: str | None = None
    stores: Sequence[str] = ()
    successors: Sequence[str] = ()


class TopologyDescriptionSubtopology(NamedTuple):
    """A struct of the StreamsGroupDescribe response."""

    subtopology_id: str = ""
    nodes: Sequence[TopologyDescriptionNode] = ()


class TopologyDescriptionGlobalStore(NamedTuple):
    """A struct of the StreamsGroupDescribe response."""

    source: TopologyDescriptionNode = TopologyDescriptionNode()
    processor: TopologyDescriptionNode = TopologyDescriptionNode()


class TopologyDescription(NamedTuple):
    """A struct of the StreamsGroupDescribe response."""

    subtopologies: Sequence[TopologyDescriptionSubtopology] = ()
    global_stores: Sequence[TopologyDescriptionGlobalStore] = ()


class DescribedGroup(NamedTuple):
    """A struct of the StreamsGroupDescribe response."""

    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    topology: Topology | None = None
    members: Sequence[Member] = ()
    authorized_operations: int = -2147483648
    topology_description: TopologyDescription | None = None
    topology_description_status: int = 0
    assignor_name: str | None = None


class StreamsGroupDescribeResponse(NamedTuple):
    """The StreamsGroupDescribe response."""

    throttle_time_ms: int = 0
    groups: Sequence[DescribedGroup] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "StreamsGroupDescribeRequest": StreamsGroupDescribeRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "KeyValue": KeyValue,
    "TopicInfo": TopicInfo,
    "Subtopology": Subtopology,
    "Topology": Topology,
    "Endpoint": Endpoint,
    "TaskOffset": TaskOffset,
    "TaskIds": TaskIds,
    "Assignment": Assignment,
    "Member": Member,
    "TopologyDescriptionNode": TopologyDescriptionNode,
    "TopologyDescriptionSubtopology": TopologyDescriptionSubtopology,
    "TopologyDescriptionGlobalStore": TopologyDescriptionGlobalStore,
    "TopologyDescription": TopologyDescription,
    "DescribedGroup": DescribedGroup,
    "StreamsGroupDescribeResponse": StreamsGroupDescribeResponse,
}

REQUEST_FIELDS: Final = """
StreamsGroupDescribeRequest 0-1 flexible 0+
 group_ids []string
 include_authorized_operations bool
 include_topology_description bool 1+ = false
"""
RESPONSE_FIELDS: Final = """
StreamsGroupDescribeResponse 0-1 flexible 0+
 throttle_time_ms int32
 groups []DescribedGroup
  error_code int16
  error_message string null = null
  group_id string
  group_state string
  group_epoch int32
  assignment_epoch int32
  topology Topology null = null
   epoch int32
   subtopologies []Subtopology null = null
    subtopology_id string
    source_topics []string
    repartition_sink_topics []string
    state_changelog_topics []TopicInfo
     name string
     partitions int32
     replication_factor int16
     topic_configs []KeyValue
      key string
      value string
    repartition_source_topics []TopicInfo
     name string
     partitions int32
     replication_factor int16
     topic_configs []KeyValue
      key string
      value string
  members []Member
   member_id string
   member_epoch int32
   instance_id string null = null
   rack_id string null = null
   client_id string
   client_host string
   topology_epoch int32
   process_id string
   user_endpoint Endpoint null = null
    host string
    port uint16
   client_tags []KeyValue
    key string
    value string
   task_offsets []TaskOffset
    subtopology_id string
    partition int32
    offset int64
   task_end_offsets []TaskOffset
    subtopology_id string
    partition int32
    offset int64
   assignment Assignment
    active_tasks []TaskIds
     subtopology_id string
     partitions []int32
    standby_tasks []TaskIds
     subtopology_id string
     partitions []int32
    warmup_tasks []TaskIds
     subtopology_id string
     partitions []int32
   target_assignment Assignment
    active_tasks []TaskIds
     subtopology_id string
     partitions []int32
    standby_tasks []TaskIds
     subtopology_id string
     partitions []int32
    warmup_tasks []TaskIds
     subtopology_id string
     partitions []int32
   is_classic bool
  authorized_operations int32 = -2147483648
  topology_description TopologyDescription 1+ null 1+ = null
   subtopologies []TopologyDescriptionSubtopology 1+
    subtopology_id string 1+
    nodes []TopologyDescriptionNode 1+
     name string 1+
     node_type int8 1+
     source_topics []string 1+
     sink_topic string 1+ null 1+ = null
     stores []string 1+
     successors []string 1+
   global_stores []TopologyDescriptionGlobalStore 1+
    source TopologyDescriptionNode 1+
     name string 1+
     node_type int8 1+
     source_topics []string 1+
     sink_topic string 1+ null 1+ = null
     stores []string 1+
     successors []string 1+
    processor TopologyDescriptionNode 1+
     name string 1+
     node_type int8 1+
     source_topics []string 1+
     sink_topic string 1+ null 1+ = null
     stores []string 1+
     successors []string 1+
  topology_description_status int8 1+ = 0
  assignor_name string 1+ null 1+ = null
"""
