"""Comparison, field by field, of a shard with a fresh one into which the runtime's own loader has replayed the log.

Compared when all that was decided is written: what is stored of groups of both protocols, offsets, and of the live classic
groups those that are Stable or Empty. Of others the log has the generation before, until there is an assignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.classic.groups import SIMPLE_GROUP
from odradek.coordinator.group.classic.states import GroupState
from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.group.consumer.group import ConsumerGroup
from odradek.coordinator.group.group_shard import GroupShard
from odradek.coordinator.group.offsets import OffsetConfig
from odradek.coordinator.group.streams.group import StreamsGroup
from odradek.coordinator.runtime.result import decode_group_record
from odradek.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.coordinator.runtime.states import ShardState
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer
from tests.campaigns.simulation.groups.broker import REPORTS
from tests.campaigns.simulation.groups.logs import LogsView
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.coordinator.group.classic.group import ClassicGroup
    from odradek.coordinator.runtime.environment import ShardContext
    from odradek.coordinator.runtime.hosted_shard import HostedShard
    from tests.campaigns.simulation.groups.logs import SimulatedLogs

REPLAYED = "the log replayed gives the live state"


def replay(
    view: Any,
    partition: int,
    make_shard: Callable[[int, ShardContext], Any],
    decode: Callable[[bytes, bytes | None], Any],
    tolerated: type[Exception] | tuple[()] = (),
) -> Any:
    """A fresh shard with what the log of ``partition`` says. ``view`` has logs for one who only reads, and its own loop."""
    shards: list[Any] = []

    def make(partition: int, context: ShardContext) -> Any:
        shards.append(make_shard(partition, context))
        return shards[-1]

    def on_fault(event: str, error: Exception) -> None:
        if not isinstance(error, tolerated):
            raise Violation(REPLAYED, f"{event}: {error!r}")

    runtime = CoordinatorRuntime("replay", view, make, decode, Timer(VirtualClock()), on_fault=on_fault)
    runtime.start_loading(partition, 0)
    while view.soon:
        view.turn()
    if runtime.states()[partition] is not ShardState.ACTIVE:
        raise Violation(REPLAYED, f"the log of partition {partition} cannot be loaded")
    return shards[0]


def make_group_shard(_partition: int, context: ShardContext) -> GroupShard:
    """A shard that only replays."""
    return GroupShard(context, config=GroupConfig, reports=REPORTS, new_id=str, offset_config=OffsetConfig())


def check_replayed(logs: SimulatedLogs, hosted: HostedShard[GroupShard], *, has_failed: bool, is_classic: bool) -> None:
    """Compare; nothing where records still wait to be appended. ``has_failed``: an append did, since the shard was loaded.

    Then a group may be Empty that could not be written so, and a static member that could not be replaced may have lost its
    place in the order of the members. A classic group that was a consumer group, and has not rebalanced since, rebalances when
    it is loaded. Raises Violation.
    """
    if hosted.has_open_batch or hosted.log.read_failures:  # type: ignore[attr-defined]  # the simulation's log
        return
    fresh = replay(LogsView(logs.logs), hosted.partition, make_group_shard, decode_group_record)
    live = hosted.shard
    compare("the groups stored", _stored(live), _stored(fresh))
    compare("the offsets", _offsets_of(live), _offsets_of(fresh))
    for group in live.classic.each():
        restored = fresh.classic.find(group.group_id)
        if is_classic and restored is None:
            raise Violation(REPLAYED, f"{group.group_id} in {group.state} is not in the log")
        if restored is None or (not is_classic and (restored.state is not GroupState.STABLE or has_failed)):
            continue
        if group.state is GroupState.STABLE or (is_classic and group.state is GroupState.EMPTY and not has_failed):
            compare(group.group_id, *(_fields_of(each, in_order=not has_failed) for each in (group, restored)))


def compare(what: str, live: Mapping[Any, Any], fresh: Mapping[Any, Any]) -> None:
    """Raises Violation for the first that differs."""
    if live == fresh:
        return
    for name in dict.fromkeys((*live, *fresh)):
        if name not in live or name not in fresh or live[name] != fresh[name]:
            raise Violation(REPLAYED, f"{what}: {name} is {live.get(name)!r}, and the log says {fresh.get(name)!r}")


def _offsets_of(shard: GroupShard) -> dict[str, Any]:
    """By group, topic and partition."""
    return {
        group_id: {topic: dict(sorted(partitions.items())) for topic, partitions in topics.items()}
        for group_id, topics in sorted(shard.offsets.by_group.items())
    }


def _stored(shard: GroupShard) -> dict[str, Any]:
    """All but the places for offsets that have none any more: the compacted log has nothing of them."""
    return {
        group_id: image_of(group) if isinstance(group, ConsumerGroup | StreamsGroup) else group
        for group_id, group in sorted(shard.groups.stored.items())
        if group is not SIMPLE_GROUP or shard.offsets.by_group.get(group_id)
    }


def _fields_of(group: ClassicGroup, *, in_order: bool) -> dict[str, Any]:
    """All that is stored of a classic group."""
    members = {
        member_id: (
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            member.metadata(group.protocol),
            member.assignment,
        )
        for member_id, member in group.members.items()
    }
    return {
        "state": group.state,
        "protocol type": group.protocol_type,
        "generation": group.generation,
        "protocol": group.protocol,
        "leader": group.leader,
        "members": members,
        "order of the members": list(members) if in_order else None,
        "static members": group.static_members,
        "subscribed topics": group.subscribed_topics,
        "settled members": group.settled_members,
    }


def image_of(group: ConsumerGroup | StreamsGroup) -> dict[str, Any]:
    """All that the records say of a consumer group or of a streams group."""
    image = {
        "epoch": group.epoch.get(),
        "metadata hash": group.metadata_hash.get(),
        "target assignment": group.target_metadata.get(),
        "members": dict(sorted(group.members.items())),
        "static members": dict(group.static_members.items()),
        "targets": dict(group.targets.items()),
    }
    if isinstance(group, StreamsGroup):
        topology = group.topology.get()
        return image | {
            "topology": None if topology is None else topology.value,
            "basis": group.basis.get(),
            "active holders": dict(group.active_holders.items()),
            "standby holders": dict(group.standby_holders.items()),
            "warm-up holders": dict(group.warmup_holders.items()),
        }
    return image | {
        "holders": dict(group.holders.items()),
        "names": dict(group.name_counts.items()),
        "expressions": dict(group.regex_counts.items()),
        "assignors": dict(group.assignor_counts.items()),
        "resolved": dict(group.regexes.items()),
    }
