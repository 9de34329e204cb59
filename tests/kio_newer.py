"""The messages of Kafka 4.4 that kio 0.6.5 lacks, as kio would have them. They are read from Kafka's definitions by hand.

An error code that may be a new one is a plain number: kio's enum does not have these.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, field, fields, make_dataclass
from typing import Any, Final
from uuid import UUID

from kio.schema.api_versions.v4 import request as api_versions_request
from kio.schema.api_versions.v4 import response as api_versions_response
from kio.schema.delete_groups.v2 import request as delete_groups_request
from kio.schema.delete_groups.v2 import response as delete_groups_response
from kio.schema.streams_group_describe.v0 import request as streams_describe_request
from kio.schema.streams_group_describe.v0 import response as streams_describe_response
from kio.schema.streams_group_heartbeat.v0 import request as streams_heartbeat_request
from kio.schema.streams_group_heartbeat.v0 import response as streams_heartbeat_response
from kio.schema.txn_offset_commit.v5 import request as txn_offset_commit_request
from kio.schema.txn_offset_commit.v5 import response as txn_offset_commit_response
from kio.schema.unregister_broker.v0 import request as unregister_broker_request
from kio.schema.unregister_broker.v0 import response as unregister_broker_response
from kio.static.primitive import i8, i16, i32, i64

from odradek.protocol.api_keys import ApiKey

_New = tuple[str, Any, "Field[Any]"]


def _new(name: str, of: Any, kafka_type: str | None = None, default: Any = MISSING) -> _New:
    return name, of, field(metadata={"kafka_type": kafka_type} if kafka_type else {}, default=default)


def _newer(entity: type[Any], version: int, *added: _New, replaced: Mapping[str, _New] | None = None, **own: Any) -> type[Any]:
    """A class of kio's in a newer version, with some fields replaced and others added at the end."""
    kept = [(replaced or {}).get(each.name, each.name) for each in fields(entity)]
    return _made(entity, version, *kept, *added, **own)


def _made(entity: type[Any], version: int, *of: str | _New, name: str = "", **own: Any) -> type[Any]:
    """A class with these fields: those of ``entity`` by their names, and others."""
    kept = {each.name: (each.name, each.type, field(metadata=each.metadata, default=each.default)) for each in fields(entity)}
    of_class = {each: getattr(entity, each) for each in ("__type__", "__flexible__", "__header_schema__", "__api_key__")}
    of_class |= {"__version__": i16(version), "__module__": __name__}
    rows = [kept[each] if isinstance(each, str) else each for each in of]
    return make_dataclass(name or entity.__name__, rows, namespace=of_class | own, frozen=True, slots=True, kw_only=True)


def _description(nested: type[Any], version: int, **own: Any) -> type[Any]:
    """The description of a topology, made like another nested class of the same message."""
    node = _made(
        nested,
        version,
        _new("name", str, "string"),
        _new("node_type", i8, "int8"),
        _new("source_topics", tuple[str, ...], "string"),
        _new("sink_topic", str | None, "string", None),
        _new("stores", tuple[str, ...], "string"),
        _new("successors", tuple[str, ...], "string"),
        name="TopologyDescriptionNode",
        **own,
    )
    subtopology = _made(
        nested,
        version,
        _new("subtopology_id", str, "string"),
        _new("nodes", tuple[node, ...]),  # type: ignore[valid-type]
        name="TopologyDescriptionSubtopology",
        **own,
    )
    store = _made(nested, version, _new("source", node), _new("processor", node), name="TopologyDescriptionGlobalStore", **own)
    return _made(
        nested,
        version,
        _new("subtopologies", tuple[subtopology, ...]),  # type: ignore[valid-type]
        _new("global_stores", tuple[store, ...]),  # type: ignore[valid-type]
        name="TopologyDescription",
        **own,
    )


_ERROR_CODE: Final = _new("error_code", i16, "int16")
_TOPIC_ID: Final = {"name": _new("topic_id", UUID | None, "uuid")}
_UNREGISTER_CONTROLLER: Final = {"__api_key__": i16(ApiKey.UNREGISTER_CONTROLLER)}
_TOPOLOGY_UPDATE: Final = {"__api_key__": i16(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE)}


def _with(entity: type[Any], version: int, array: str, element: type[Any], **replaced: _New) -> type[Any]:
    """A message in a newer version, in which one array's elements are of another class."""
    return _newer(entity, version, replaced={**replaced, array: _new(array, tuple[element, ...])})  # type: ignore[valid-type]


NEWER: Final[Mapping[tuple[ApiKey, int, str], type[Any]]] = {
    (ApiKey.API_VERSIONS, 5, "request"): _newer(
        api_versions_request.ApiVersionsRequest,
        5,
        _new("cluster_id", str | None, "string", None),
        _new("node_id", i32, "int32", i32(-1)),
    ),
    (ApiKey.API_VERSIONS, 5, "response"): _newer(api_versions_response.ApiVersionsResponse, 5),
    (ApiKey.DELETE_GROUPS, 3, "request"): _newer(delete_groups_request.DeleteGroupsRequest, 3),
    (ApiKey.DELETE_GROUPS, 3, "response"): _with(
        delete_groups_response.DeleteGroupsResponse,
        3,
        "results",
        _newer(
            delete_groups_response.DeletableGroupResult,
            3,
            _new("error_message", str | None, "string", None),
            replaced={"error_code": _ERROR_CODE},
        ),
    ),
    (ApiKey.STREAMS_GROUP_HEARTBEAT, 1, "request"): _newer(streams_heartbeat_request.StreamsGroupHeartbeatRequest, 1),
    (ApiKey.STREAMS_GROUP_HEARTBEAT, 1, "response"): _made(
        streams_heartbeat_response.StreamsGroupHeartbeatResponse,
        1,
        *("throttle_time", "error_code", "error_message", "member_id", "member_epoch", "heartbeat_interval"),
        "task_offset_interval",
        _new("acceptable_recovery_lag", i64, "int64", i64(-1)),
        *("status", "active_tasks", "standby_tasks", "warmup_tasks"),
        _new("topology_description_required", bool, "bool", default=False),
        *("endpoint_information_epoch", "partitions_by_user_endpoint"),
    ),
    (ApiKey.STREAMS_GROUP_DESCRIBE, 1, "request"): _newer(
        streams_describe_request.StreamsGroupDescribeRequest,
        1,
        _new("include_topology_description", bool, "bool", default=False),
    ),
    (ApiKey.STREAMS_GROUP_DESCRIBE, 1, "response"): _with(
        streams_describe_response.StreamsGroupDescribeResponse,
        1,
        "groups",
        _newer(
            streams_describe_response.DescribedGroup,
            1,
            _new("topology_description", _description(streams_describe_response.TaskIds, 1) | None, default=None),
            _new("topology_description_status", i8, "int8", i8(0)),
            _new("assignor_name", str | None, "string", None),
        ),
    ),
    (ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, 0, "request"): _made(
        streams_heartbeat_request.StreamsGroupHeartbeatRequest,
        0,
        *("group_id", "member_id"),
        _new("topology_epoch", i32, "int32"),
        _new("topology_description", _description(streams_heartbeat_request.TaskIds, 0, **_TOPOLOGY_UPDATE)),
        name="StreamsGroupTopologyDescriptionUpdateRequest",
        **_TOPOLOGY_UPDATE,
    ),
    (ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, 0, "response"): _made(
        streams_heartbeat_response.StreamsGroupHeartbeatResponse,
        0,
        "throttle_time",
        _ERROR_CODE,
        "error_message",
        name="StreamsGroupTopologyDescriptionUpdateResponse",
        **_TOPOLOGY_UPDATE,
    ),
    (ApiKey.TXN_OFFSET_COMMIT, 6, "request"): _with(
        txn_offset_commit_request.TxnOffsetCommitRequest,
        6,
        "topics",
        _newer(txn_offset_commit_request.TxnOffsetCommitRequestTopic, 6, replaced=_TOPIC_ID),
        generation_id=_new("generation_id_or_member_epoch", i32, "int32", i32(-1)),
    ),
    (ApiKey.TXN_OFFSET_COMMIT, 6, "response"): _with(
        txn_offset_commit_response.TxnOffsetCommitResponse,
        6,
        "topics",
        _newer(txn_offset_commit_response.TxnOffsetCommitResponseTopic, 6, replaced=_TOPIC_ID),
    ),
    (ApiKey.UNREGISTER_CONTROLLER, 0, "request"): _newer(
        unregister_broker_request.UnregisterBrokerRequest,
        0,
        replaced={"broker_id": _new("controller_id", i32, "int32")},
        name="UnregisterControllerRequest",
        **_UNREGISTER_CONTROLLER,
    ),
    (ApiKey.UNREGISTER_CONTROLLER, 0, "response"): _newer(
        unregister_broker_response.UnregisterBrokerResponse,
        0,
        replaced={"error_code": _ERROR_CODE},
        name="UnregisterControllerResponse",
        **_UNREGISTER_CONTROLLER,
    ),
}
