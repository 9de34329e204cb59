"""Requests with effect: about a topic that exists and a group that they create. Random requests seldom get past a look-up."""

from typing import Any

from odradek.broker.handlers import SERVED
from odradek.protocol.api_keys import ApiKey
from tests.raw_client import encode_request, fetch_fields

_GROUP = "g"


def aimed_frames(topic: str) -> list[bytes]:
    """Frames, without the length in front, that a broker which has ``topic`` answers with more than an error."""
    return [encode_request(key, version, **fields)[4:] for key, version, fields in _requests(topic) if key in SERVED]


def _requests(topic: str) -> list[tuple[ApiKey, int, dict[str, Any]]]:
    offset = {"partition_index": 0, "committed_offset": 3, "committed_metadata": "metadata"}
    member = {"group_id": _GROUP, "member_id": "m", "generation_id": 1}
    return [
        (ApiKey.FETCH, 12, fetch_fields(topic, 0)),
        (ApiKey.FETCH, 12, fetch_fields(topic, 0, max_wait_ms=20, min_bytes=1 << 20, session_epoch=0)),
        (ApiKey.LIST_OFFSETS, 7, {"topics": [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -3}]}]}),
        (ApiKey.METADATA, 9, {"topics": [{"name": topic}]}),
        (ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, {"topics": [{"topic": topic, "partitions": [{"partition": 0}]}]}),
        (ApiKey.DELETE_RECORDS, 2, {"topics": [{"name": topic, "partitions": [{"partition_index": 0, "offset": -1}]}]}),
        (ApiKey.CREATE_PARTITIONS, 3, {"topics": [{"name": topic, "count": 2}]}),
        (ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [{"resource_type": 2, "resource_name": topic}], "include_synonyms": True}),
        (ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": [{"name": topic}], "response_partition_limit": 5}),
        (ApiKey.FIND_COORDINATOR, 4, {"coordinator_keys": [_GROUP]}),
        (ApiKey.JOIN_GROUP, 5, _join_fields(member_id="")),
        (ApiKey.JOIN_GROUP, 7, _join_fields(member_id="", group_instance_id="i")),
        (ApiKey.SYNC_GROUP, 5, {**member, "assignments": [{"member_id": "m", "assignment": b"a"}]}),
        (ApiKey.HEARTBEAT, 4, member),
        (ApiKey.LEAVE_GROUP, 5, {"group_id": _GROUP, "members": [{"member_id": "", "group_instance_id": "i"}]}),
        (ApiKey.DESCRIBE_GROUPS, 5, {"groups": [_GROUP]}),
        (ApiKey.LIST_GROUPS, 4, {}),
        (ApiKey.DELETE_GROUPS, 2, {"groups_names": [_GROUP]}),
        (ApiKey.OFFSET_COMMIT, 8, {"group_id": "simple", "topics": [{"name": topic, "partitions": [offset, offset]}]}),
        (ApiKey.OFFSET_COMMIT, 3, {"group_id": _GROUP, "topics": [{"name": topic, "partitions": [offset]}]}),
        (ApiKey.OFFSET_FETCH, 8, {"groups": [{"group_id": "simple"}, {"group_id": _GROUP}], "require_stable": True}),
        (ApiKey.OFFSET_FETCH, 5, {"group_id": "simple", "topics": [{"name": topic, "partition_indexes": (0, 1)}]}),
        (ApiKey.OFFSET_DELETE, 0, {"group_id": "simple", "topics": [{"name": topic, "partitions": [{"partition_index": 0}]}]}),
    ]


def _join_fields(**fields: Any) -> dict[str, Any]:
    return {
        "group_id": _GROUP,
        "session_timeout_ms": 6000,
        "rebalance_timeout_ms": 20,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"}],
        **fields,
    }
