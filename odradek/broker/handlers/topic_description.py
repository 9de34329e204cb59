"""What several descriptions say alike: a partition's state, and what a client may do with topics, groups and the cluster."""

from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from odradek.broker.handlers.services import ClusterServices

# Authorised operations are a bit per AclOperation code (KIP-430); without an authoriser everything that applies is allowed.
NO_OPERATIONS = -(2**31)
_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE = 3, 4, 5, 6, 7, 8
_CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = 9, 10, 11, 12


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = _bits(_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)
GROUP_OPERATIONS = _bits(_READ, _DELETE, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)
CLUSTER_OPERATIONS = _bits(_CREATE, _ALTER, _DESCRIBE, _CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE)


class PartitionState(NamedTuple):
    """A partition as clients are told of it; an offline one has no leader (-1) and LEADER_NOT_AVAILABLE."""

    error_code: ErrorCode
    partition_index: int
    leader_id: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    offline_replicas: list[int]


def partition_state(services: "ClusterServices", topic: str, index: int) -> PartitionState:
    """The state of a partition that the controller knows."""
    partition = services.partitions.get(topic, index)
    node_id = services.node_id
    if partition is None or partition.log is None:
        epoch = -1 if partition is None else partition.leader_epoch
        return PartitionState(ErrorCode.LEADER_NOT_AVAILABLE, index, -1, epoch, [node_id], [node_id], [node_id])
    return PartitionState(ErrorCode.NONE, index, node_id, partition.leader_epoch, [node_id], [node_id], [])
