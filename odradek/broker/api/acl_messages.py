"""Access control in the messages of APIs: ACL entries, and the client's authorized operations (KIP-430).

CreateAcls, DescribeAcls and DeleteAcls carry entries. The APIs that describe topics, groups and the cluster tell the client which
operations it may do: one bit per AclOperation code. Without an authorizer all applicable ones are allowed.
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from odradek.broker.large import answer_in_slices, with_pauses
from odradek.broker.security.acl.rules import Rule, on_cluster
from odradek.common.acls import (
    CLUSTER_NAME,
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
from odradek.protocol.message_types.describe_cluster import DescribeClusterResponse
from odradek.protocol.message_types.metadata import MetadataResponse

if TYPE_CHECKING:
    from odradek.broker.security.acl.rules import GuardedRequest

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


NO_OPERATIONS = -(2**31)
_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE = 3, 4, 5, 6, 7, 8
_CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = 9, 10, 11, 12


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = _bits(_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)
GROUP_OPERATIONS = _bits(_READ, _DELETE, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)
CLUSTER_OPERATIONS = _bits(_CREATE, _ALTER, _DESCRIBE, _CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE)


ResponseT = TypeVar("ResponseT", MetadataResponse, DescribeClusterResponse)
# Topics whose operations are found without a pause: each asks the authorizer eight times.
_OPERATIONS_TOGETHER: Final = 20


def with_topic_operations(guarded: "GuardedRequest", response: Any) -> Any:
    """Fill in the client's operations on each topic. Without an authorizer, the handler has filled in all operations."""

    def told(topic: Any) -> Any:
        operations = NO_OPERATIONS if topic.name is None else guarded.access.operations(AclResourceType.TOPIC, topic.name)
        return topic._replace(topic_authorized_operations=operations)

    def work() -> Generator[None, None, Any]:
        return response._replace(topics=(yield from with_pauses(response.topics, told, _OPERATIONS_TOGETHER)))

    return answer_in_slices(guarded.services, guarded.context, work())


def with_cluster_operations(guarded: "GuardedRequest", response: ResponseT) -> ResponseT:
    """Fill in the client's operations on the cluster, if requested. Without DESCRIBE there are none."""
    if response.cluster_authorized_operations == NO_OPERATIONS:
        return response
    operations = 0
    if guarded.access.allows_cluster(AclOperation.DESCRIBE):
        operations = guarded.access.operations(AclResourceType.CLUSTER, CLUSTER_NAME)
    return response._replace(cluster_authorized_operations=operations)


def with_group_operations(guarded: "GuardedRequest", response: Any) -> Any:
    """Fill in the client's operations on each group, if requested. Without an authorizer, the handler has filled in all."""
    groups = [
        group
        if group.authorized_operations == NO_OPERATIONS
        else group._replace(authorized_operations=guarded.access.operations(AclResourceType.GROUP, group.group_id))
        for group in response.groups
    ]
    return response._replace(groups=groups)
