"""Access control entries in the messages of CreateAcls, DescribeAcls and DeleteAcls."""

from typing import Any, TypeAlias

from odradek.broker.security.acl.rules import Rule, on_cluster
from odradek.common.acls import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
    coded,
)
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.create_acls import AclCreation, CreateAclsRequest
from odradek.protocol.message_types.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from odradek.protocol.message_types.describe_acls import DescribeAclsRequest

Request: TypeAlias = CreateAclsRequest | DeleteAclsRequest | DescribeAclsRequest


def binding_in(creation: AclCreation) -> AclBinding:
    """Return the binding to create."""
    return AclBinding(
        coded(AclResourceType, creation.resource_type),
        creation.resource_name,
        coded(PatternType, creation.resource_pattern_type),
        creation.principal,
        creation.host,
        coded(AclOperation, creation.operation),
        coded(AclPermission, creation.permission_type),
    )


def filter_in(message: DeleteAclsFilter | DescribeAclsRequest) -> AclFilter:
    """Return the filter of a message."""
    return AclFilter(
        coded(AclResourceType, message.resource_type_filter),
        message.resource_name_filter,
        coded(PatternType, message.pattern_type_filter),
        message.principal_filter,
        message.host_filter,
        coded(AclOperation, message.operation),
        coded(AclPermission, message.permission_type),
    )


def has_unknown_codes(request: Request) -> bool:
    """Return whether a request contains the code UNKNOWN. Kafka closes the connection then."""
    if isinstance(request, CreateAclsRequest):
        return any(
            0 in (each.resource_type, each.resource_pattern_type, each.operation, each.permission_type)
            for each in request.creations
        )
    filters: Any = request.filters if isinstance(request, DeleteAclsRequest) else [request]
    return any(
        0 in (each.resource_type_filter, each.pattern_type_filter, each.operation, each.permission_type) for each in filters
    )


NO_AUTHORIZER = KafkaError(ErrorCode.SECURITY_DISABLED, "No authorizer is configured.")


def acl_rule(operation: AclOperation) -> Rule:
    """Return a rule like ``on_cluster`` that passes messages with UNKNOWN codes to the handler, whoever sends them."""
    rule = on_cluster(operation)
    return lambda asked: asked.handle() if has_unknown_codes(asked.request) else rule(asked)
