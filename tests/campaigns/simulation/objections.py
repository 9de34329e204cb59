"""The reasons against granting a request, by the state of its group when the request arrives.

Only a member of the present generation is served, under its present member id: a heartbeat or a SyncGroup unless its group
prepares a rebalance, a commit unless the generation's assignment is pending. Every client may commit to a group without
members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.classic.states import GroupState
from odradek.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.coordinator.group.group_shard import GroupShard
    from odradek.coordinator.runtime.hosted_shard import HostedShard

CHECKED_APIS = frozenset({ApiKey.HEARTBEAT, ApiKey.SYNC_GROUP, ApiKey.OFFSET_COMMIT})
_NOT_IN = {
    ApiKey.HEARTBEAT: GroupState.PREPARING_REBALANCE,
    ApiKey.SYNC_GROUP: GroupState.PREPARING_REBALANCE,
    ApiKey.OFFSET_COMMIT: GroupState.COMPLETING_REBALANCE,
}


def objection_to(api_key: ApiKey, request: Any, hosted: HostedShard[GroupShard] | None) -> str:
    """The reason; empty if there is none, or if the request is decided later, when the state may be another."""
    if hosted is None or hosted._is_deciding:
        return ""
    group = hosted.shard.classic.find(request.group_id)
    is_commit = api_key is ApiKey.OFFSET_COMMIT
    generation = request.generation_id_or_member_epoch if is_commit else request.generation_id
    if is_commit and generation < 0:
        return "the group has members" if group is not None and group.members else ""
    if group is None or request.member_id not in group.members:
        return "it is not a member"
    instance_id = request.group_instance_id
    if instance_id is not None and group.static_members.get(instance_id) != request.member_id:
        return "it was replaced"
    if generation != group.generation:
        return f"the generation is {group.generation}"
    return f"the group is in {group.state}" if group.state is _NOT_IN[api_key] else ""
