"""DescribeLogDirs, versions 1 to 5: what lies in the data directory (KIP-113), and the size of its volume (KIP-827).

One directory, with the partitions asked for that are in it, or all of them; sizes are those of their segments. A leader
lags by nothing. Deliberate gaps: a directory is never cordoned (version 5, KIP-1066), and no replica moves between directories.
"""

import os
from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.server import Broker

M = messages(ApiKey.DESCRIBE_LOG_DIRS)

_UNKNOWN_BYTES = -1


def handle(broker: "Broker", context: "RequestContext", request: Any) -> Any:  # noqa: ARG001
    """Describe the data directory."""
    logs = broker.log_manager.logs
    if request.topics is None:
        wanted = sorted(logs)
    else:
        asked = {(topic.topic, partition) for topic in request.topics for partition in topic.partitions}
        wanted = sorted(asked & logs.keys())
    partitions: dict[str, list[Any]] = {}
    for topic, partition in wanted:
        partitions.setdefault(topic, []).append(
            M.DescribeLogDirsPartition(partition_index=partition, partition_size=logs[topic, partition].size_bytes)
        )
    log_dir = broker.log_manager.log_dir
    total_bytes, usable_bytes = _volume(log_dir)
    return M.DescribeLogDirsResponse(
        results=[
            M.DescribeLogDirsResult(
                log_dir=log_dir,
                topics=[M.DescribeLogDirsTopic(name=name, partitions=found) for name, found in partitions.items()],
                total_bytes=total_bytes,
                usable_bytes=usable_bytes,
            )
        ]
    )


def _volume(log_dir: str) -> tuple[int, int]:
    try:
        volume = os.statvfs(log_dir)
    except OSError:  # a directory in memory is on no volume
        return _UNKNOWN_BYTES, _UNKNOWN_BYTES
    return volume.f_frsize * volume.f_blocks, volume.f_frsize * volume.f_bavail
