"""AlterReplicaLogDirs, versions 1 to 2: moves partitions to another of ``log.dirs`` (KIP-113).

The response is sent when the moves have begun; DescribeLogDirs reports their progress. Moving a partition to its current
directory cancels its move.

LOG_DIR_NOT_FOUND if the path is not in ``log.dirs``; KAFKA_STORAGE_ERROR if that directory, the partition or any other directory
is offline; UNKNOWN_TOPIC_OR_PARTITION.
"""

from typing import TYPE_CHECKING

from odradek.broker.large import Pieces
from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import DirectoryServices
    from odradek.common.context import RequestContext

pieces = Pieces(("dirs", "topics", "partitions"), ("results", "partitions"))


def handle(
    services: "DirectoryServices", _context: "RequestContext", request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Begin the moves, with one result per partition. A partition that is named twice moves to the last path."""
    paths = {(topic.name, index): target.path for target in request.dirs for topic in target.topics for index in topic.partitions}
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for (topic, index), path in paths.items():
        error = _move(services, path, topic, index)
        results.setdefault(topic, []).append(AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error))
    return AlterReplicaLogDirsResponse(
        results=[AlterReplicaLogDirTopicResult(topic_name=name, partitions=found) for name, found in results.items()]
    )


def _move(services: "DirectoryServices", path: str, topic: str, index: int) -> ErrorCode:
    directory = next((directory for directory in services.log_manager.directories if directory.path == path), None)
    if directory is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if directory.failure:
        return ErrorCode.KAFKA_STORAGE_ERROR
    try:
        services.moves.request(services.partitions.require(topic, index), directory)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


rule = on_cluster(AclOperation.ALTER)
