"""How much there is of everything that a broker keeps on disk and in memory."""

import gc
import sys
from collections import Counter
from typing import Any

from odradek.broker.server import Broker
from odradek.protocol.coordinator_records import offsets
from tests.campaigns.year.disk import WatchedDisk

# Caches, of so many entries at most, of names that there were: they are full after some years of this.
_CACHES = (offsets._remember_names.cache_clear,)
_METADATA = "__cluster_metadata"
_KINDS = (".log", ".index", ".snapshot", ".deleted")
MEASURES = (
    *("disk bytes", "files", *(f"{kind} files" for kind in _KINDS), "open files", "logs", "segments"),
    *(
        "producers",
        "open transactions",
        "timers",
        "groups",
        "offsets",
        "pending offsets",
        "transactional ids",
        "blocks of memory",
    ),
)


def measure(broker: Broker, disk: WatchedDisk) -> dict[str, int]:
    """All of it by name. Left out is the metadata log, which keeps a few records of each topic that there ever was."""
    clears = [*_CACHES, *(host.runtime._partition_of.clear for host in (broker.groups, broker.transactions))]
    for clear in clears:
        clear()
    gc.collect()
    files = {path: file for path, file in disk.files.items() if _METADATA not in path}
    kinds: Counter[str] = Counter(path[path.rfind(".") :] for path in files)
    logs = list(broker.log_manager.logs.values())
    groups = _shards(broker.groups)
    transactions = _shards(broker.transactions)
    return {
        "disk bytes": sum(len(file.data) for file in files.values()),
        "files": len(files),
        **{f"{kind} files": kinds[kind] for kind in _KINDS},
        "open files": sum(_METADATA not in handle.path for handle in disk.handles),
        "logs": len(logs),
        "segments": sum(len(log.segments) for log in logs),
        "producers": sum(len(log.producers.by_id) for log in logs),
        "open transactions": sum(len(log.producers.open_transactions) for log in logs),
        "timers": len(broker.timer),
        "groups": sum(len(shard.groups.stored) + len(shard.groups.live) for shard in groups),
        "offsets": sum(len(shard.offsets) for shard in groups),
        "pending offsets": sum(len(shard.offsets.pending) for shard in groups),
        "transactional ids": sum(len(shard.transactions.by_id) for shard in transactions),
        "blocks of memory": sys.getallocatedblocks(),
    }


def _shards(coordinator: Any) -> list[Any]:
    return [hosted.shard for hosted in coordinator.runtime._hosted.values()]
