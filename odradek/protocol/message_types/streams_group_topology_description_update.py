"""StreamsGroupTopologyDescriptionUpdate up to version 0. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class TopologyDescriptionNode(NamedTuple):
    """A struct of the StreamsGroupTopologyDescriptionUpdate request."""

    name: str = ""
    node_type: int = 0
    source_topics: Sequence[str] = ()
    sink_topic: str | None = None
    stores: Sequence[str] = ()
    successors: Sequence[str] = ()


class TopologyDescriptionSubtopology(NamedTuple):
    """A struct of the StreamsGroupTopologyDescriptionUpdate request."""

    subtopology_id: str = ""
    nodes: Sequence[TopologyDescriptionNode] = ()


class TopologyDescriptionGlobalStore(NamedTuple):
    """A struct of the StreamsGroupTopologyDescriptionUpdate request."""

    source: TopologyDescriptionNode = TopologyDescriptionNode()
    processor: TopologyDescriptionNode = TopologyDescriptionNode()


class TopologyDescription(NamedTuple):
    """A struct of the StreamsGroupTopologyDescriptionUpdate request."""

    subtopologies: Sequence[TopologyDescriptionSubtopology] = ()
    global_stores: Sequence[TopologyDescriptionGlobalStore] = ()


class StreamsGroupTopologyDescriptionUpdateRequest(NamedTuple):
    """The StreamsGroupTopologyDescriptionUpdate request."""

    group_id: str = ""
    member_id: str = ""
    topology_epoch: int = 0
    topology_description: TopologyDescription = TopologyDescription()


class StreamsGroupTopologyDescriptionUpdateResponse(NamedTuple):
    """The StreamsGroupTopologyDescriptionUpdate response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None


REQUEST: Final[dict[str, type[Any]]] = {
    "TopologyDescriptionNode": TopologyDescriptionNode,
    "TopologyDescriptionSubtopology": TopologyDescriptionSubtopology,
    "TopologyDescriptionGlobalStore": TopologyDescriptionGlobalStore,
    "TopologyDescription": TopologyDescription,
    "StreamsGroupTopologyDescriptionUpdateRequest": StreamsGroupTopologyDescriptionUpdateRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "StreamsGroupTopologyDescriptionUpdateResponse": StreamsGroupTopologyDescriptionUpdateResponse,
}

REQUEST_FIELDS: Final = """
StreamsGroupTopologyDescriptionUpdateRequest 0 flexible 0+
 group_id string
 member_id string
 topology_epoch int32
 topology_description TopologyDescription
  subtopologies []TopologyDescriptionSubtopology
   subtopology_id string
   nodes []TopologyDescriptionNode
    name string
    node_type int8
    source_topics []string
    sink_topic string null = null
    stores []string
    successors []string
  global_stores []TopologyDescriptionGlobalStore
   source TopologyDescriptionNode
    name string
    node_type int8
    source_topics []string
    sink_topic string null = null
    stores []string
    successors []string
   processor TopologyDescriptionNode
    name string
    node_type int8
    source_topics []string
    sink_topic string null = null
    stores []string
    successors []string
"""
RESPONSE_FIELDS: Final = """
StreamsGroupTopologyDescriptionUpdateResponse 0 flexible 0+
 throttle_time_ms int32
 error_code int16
 error_message string null = null
"""
