"""The groups of each broker, and the names that a wrong one resembles."""

from typing import Any

from odradek.cli.cluster import Cluster, Refused, Unreachable, check, patiently
from odradek.cli.options import did_you_mean
from odradek.client.admin_apis import LIST_GROUPS
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.list_groups import ListGroupsRequest


def groups_of_broker(cluster: Cluster, node_id: int) -> list[dict[str, Any]]:
    """Return the groups of one broker; none if it does not answer."""
    return cluster.tried(lambda: patiently(lambda: _listed(cluster, node_id))) or []


def _listed(cluster: Cluster, node_id: int) -> list[dict[str, Any]]:
    answer = cluster.node(node_id).call(LIST_GROUPS, ListGroupsRequest())
    check(f"groups of broker {node_id}", answer.error_code)
    return [
        {
            "group": str(group.group_id),
            # Version 4 added the state, version 5 the type.
            "state": group.group_state or None,
            "type": group.group_type or None,
            "protocol_type": group.protocol_type,
            "coordinator": node_id,
        }
        for group in answer.groups
    ]


def with_similar_groups(cluster: Cluster, name: str, failure: Refused | Unreachable) -> Refused | Unreachable:
    """Return the failure; for a group that does not exist, with the names that it resembles."""
    if not isinstance(failure, Refused) or failure.code is not ErrorCode.GROUP_ID_NOT_FOUND:
        return failure
    known = [row["group"] for node in cluster.nodes() for row in groups_of_broker(cluster, node.node_id)]
    similar = did_you_mean(name, known)
    return Refused(name, ErrorCode.GROUP_ID_NOT_FOUND, f"there is no such group{similar}") if similar else failure
