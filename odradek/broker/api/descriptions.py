"""Authorized operations of a client on topics, groups and the cluster, for the APIs that describe them."""

# Authorized operations have one bit per AclOperation code (KIP-430). Without an authorizer all applicable ones are allowed.
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, TypeVar

from odradek.broker.large.in_slices import answer_in_slices, with_pauses
from odradek.common.acls import CLUSTER_NAME, AclOperation, AclResourceType
from odradek.protocol.message_types.describe_cluster import DescribeClusterResponse
from odradek.protocol.message_types.metadata import MetadataResponse

if TYPE_CHECKING:
    from odradek.broker.security.acl.rules import Asked

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


def with_topic_operations(asked: "Asked", response: Any) -> Any:
    """Fill in the client's operations on each topic. Without an authorizer, the handler has filled in all operations."""

    def told(topic: Any) -> Any:
        operations = NO_OPERATIONS if topic.name is None else asked.access.operations(AclResourceType.TOPIC, topic.name)
        return topic._replace(topic_authorized_operations=operations)

    def work() -> Generator[None, None, Any]:
        return response._replace(topics=(yield from with_pauses(response.topics, told, _OPERATIONS_TOGETHER)))

    return answer_in_slices(asked.services, asked.context, work())


def with_cluster_operations(asked: "Asked", response: ResponseT) -> ResponseT:
    """Fill in the client's operations on the cluster, if requested. Without DESCRIBE there are none."""
    if response.cluster_authorized_operations == NO_OPERATIONS:
        return response
    operations = 0
    if asked.access.allows_cluster(AclOperation.DESCRIBE):
        operations = asked.access.operations(AclResourceType.CLUSTER, CLUSTER_NAME)
    return response._replace(cluster_authorized_operations=operations)


def with_group_operations(asked: "Asked", response: Any) -> Any:
    """Fill in the client's operations on each group, if requested. Without an authorizer, the handler has filled in all."""
    groups = [
        group
        if group.authorized_operations == NO_OPERATIONS
        else group._replace(authorized_operations=asked.access.operations(AclResourceType.GROUP, group.group_id))
        for group in response.groups
    ]
    return response._replace(groups=groups)
