"""Rules for requests that are permitted or refused as a whole."""

from typing import Any, Final

from odradek.broker.authorization.asked import Asked, Rule
from odradek.broker.authorization.refusals import refused
from odradek.broker.authorizer.acls import AclOperation, AclResourceType
from odradek.protocol.errors import ErrorCode

# SyncGroup from this version on.
_WITH_PROTOCOL: Final = 5


def on_cluster(operation: AclOperation) -> Rule:
    """The client needs ``operation`` on the cluster."""

    def rule(asked: Asked) -> Any:
        if asked.access.allows_cluster(operation):
            return asked.handle()
        return refused(asked, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    return rule


def reads_group(asked: Asked) -> Any:
    """READ on the group: Heartbeat, LeaveGroup."""
    if asked.access.allows(AclOperation.READ, AclResourceType.GROUP, asked.request.group_id):
        return asked.handle()
    return refused(asked, ErrorCode.GROUP_AUTHORIZATION_FAILED)


def write_txn_markers(asked: Asked) -> Any:
    """ALTER on the cluster, for tools, or CLUSTER_ACTION, for brokers."""
    access = asked.access
    if access.allows_cluster(AclOperation.ALTER, tells=False) or access.allows_cluster(AclOperation.CLUSTER_ACTION):
        return asked.handle()
    return refused(asked, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def acl_change(operation: AclOperation) -> Rule:
    """CreateAcls and DeleteAcls: like ``on_cluster``, but a message with codes that are UNKNOWN is none, whoever sends it."""
    rule = on_cluster(operation)

    def checked(asked: Asked) -> Any:
        from odradek.broker.handlers.acl_messages import has_unknown_codes

        return asked.handle() if has_unknown_codes(asked.request) else rule(asked)

    return checked


def sync_group(asked: Asked) -> Any:
    """READ on the group; a request that lacks its protocol is refused for that first."""
    request = asked.request
    if asked.context.version >= _WITH_PROTOCOL and (request.protocol_type is None or request.protocol_name is None):
        return refused(asked, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return reads_group(asked)
