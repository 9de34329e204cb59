"""DescribeLogDirs, versions 1 to 5: the contents of the data directories (KIP-113), and the size of their volumes (KIP-827).

Each of ``log.dirs`` is listed with the requested partitions in it, or with all partitions. Sizes are those of their segments. A
leader's lag is 0. The copy of a partition that is moving is listed in the target directory (``isFutureKey``), with its lag.
A directory that is offline has KAFKA_STORAGE_ERROR. Deliberate gap: a directory is never cordoned (version 5, KIP-1066).
"""

import os
from typing import TYPE_CHECKING, Final

from odradek.broker.large import answer_in_slices
from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.api.services import DirectoryServices
    from odradek.broker.large import Answer
    from odradek.common.context import RequestContext


_UNKNOWN_BYTES = -1
# Partitions that are described without a pause: this takes half a millisecond.
_TOGETHER: Final = 250

has_unbounded_response = True


def handle(
    services: "DirectoryServices", context: "RequestContext", request: DescribeLogDirsRequest
) -> "Answer[DescribeLogDirsResponse]":
    """Describe the data directories, in slices. A partition that is deleted meanwhile is left out."""
    return answer_in_slices(services, context, _describe_all(services, request))


def _describe_all(
    services: "DirectoryServices", request: DescribeLogDirsRequest
) -> "Generator[None, None, DescribeLogDirsResponse]":
    manager = services.log_manager
    asked = None
    if request.topics is not None:
        asked = {(topic.topic, partition) for topic in request.topics for partition in topic.partitions}
    found: dict[str, dict[str, list[DescribeLogDirsPartition]]] = {directory.path: {} for directory in manager.directories}
    for place, key in enumerate(sorted(manager.logs if asked is None else asked & manager.logs.keys())):
        if place % _TOGETHER == _TOGETHER - 1:
            yield None
        log = manager.logs.get(key)
        if log is None:
            continue
        found[manager.home_of(log).path].setdefault(key[0], []).append(
            DescribeLogDirsPartition(partition_index=key[1], partition_size=log.size_bytes)
        )
    for move in services.moves.under_way():
        if asked is None or move.key in asked:
            found[move.target.path].setdefault(move.key[0], []).append(
                DescribeLogDirsPartition(
                    partition_index=move.key[1],
                    partition_size=move.copied_bytes,
                    offset_lag=move.offset_lag,
                    is_future_key=True,
                )
            )
    return DescribeLogDirsResponse(
        results=[_describe(directory.path, directory.failure, found[directory.path]) for directory in manager.directories]
    )


def _describe(path: str, failure: str, partitions: dict[str, list[DescribeLogDirsPartition]]) -> DescribeLogDirsResult:
    if failure:
        return DescribeLogDirsResult(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path, total_bytes=_UNKNOWN_BYTES, usable_bytes=_UNKNOWN_BYTES
        )
    total_bytes, usable_bytes = _volume(path)
    return DescribeLogDirsResult(
        log_dir=path,
        topics=[DescribeLogDirsTopic(name=name, partitions=found) for name, found in partitions.items()],
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )


def _volume(log_dir: str) -> tuple[int, int]:
    try:
        volume = os.statvfs(log_dir)
    except OSError:  # a directory in memory is on no volume
        return _UNKNOWN_BYTES, _UNKNOWN_BYTES
    return volume.f_frsize * volume.f_blocks, volume.f_frsize * volume.f_bavail


rule = on_cluster(AclOperation.DESCRIBE)
