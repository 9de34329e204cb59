"""Whether the log, replayed into a fresh shard, gives the groups that there are, of both protocols, and their offsets.

A classic group that was a consumer group, and has not rebalanced since, rebalances when it is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.classic.states import GroupState
from odradek.coordinator.group.consumer.group import ConsumerGroup
from tests.campaigns.simulation.broker import REPORTS
from tests.campaigns.simulation.replayed import compare, fields_of, offsets_of, replay

if TYPE_CHECKING:
    from odradek.coordinator.group.group_shard import GroupShard
    from odradek.coordinator.runtime.hosted_shard import HostedShard
    from tests.campaigns.simulation.logs import SimulatedLogs


def check_replayed(logs: SimulatedLogs, hosted: HostedShard[GroupShard], *, has_failed: bool) -> None:
    """Compare; nothing where records still wait to be appended. ``has_failed`` as there. Raises Violation."""
    if hosted.has_open_batch or hosted.log.read_failures:  # type: ignore[attr-defined]  # the simulation's log
        return
    fresh = replay(logs, hosted.partition, REPORTS)
    live = hosted.shard
    compare("the offsets", offsets_of(live), offsets_of(fresh))
    compare("the groups stored", _stored(live), _stored(fresh))
    for group in live.classic.each():
        restored = fresh.classic.find(group.group_id)
        if restored is None or restored.state is not GroupState.STABLE:
            continue
        if group.state is GroupState.STABLE and not has_failed:
            compare(group.group_id, fields_of(group, in_order=True), fields_of(restored, in_order=True))


def _stored(shard: GroupShard) -> dict[str, Any]:
    return {
        group_id: image_of(group) if isinstance(group, ConsumerGroup) else group
        for group_id, group in sorted(shard.groups.stored.items())
    }


def image_of(group: ConsumerGroup) -> dict[str, Any]:
    """All that the records say of a consumer group."""
    return {
        "epoch": group.epoch.get(),
        "metadata hash": group.metadata_hash.get(),
        "target assignment": group.target_metadata.get(),
        "members": dict(sorted(group.members.items())),
        "static members": dict(group.static_members.items()),
        "targets": dict(group.targets.items()),
        "holders": dict(group.holders.items()),
        "names": dict(group.name_counts.items()),
        "expressions": dict(group.regex_counts.items()),
        "assignors": dict(group.assignor_counts.items()),
        "resolved": dict(group.regexes.items()),
    }
