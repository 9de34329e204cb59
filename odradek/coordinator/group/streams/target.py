"""The target assignment of a streams group: computed when it is older than the group's epoch, and not too early.

    the group is new                 ``streams.initial.rebalance.delay.ms`` after its first member joined
    else                             at most once per ``streams.assignment.interval.ms``
    the topology is not ready        nobody has a task

Source: ``TargetAssignmentBuilder`` and ``GroupMetadataManager.maybeUpdateStreamsTargetAssignment`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  mypyc makes a NamedTuple's types at run time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from odradek.coordinator.group.assignor.streams_interface import MemberTasks, StreamsGroupSpec, StreamsMemberSpec
from odradek.coordinator.group.consumer.explanations import MOST_NAMED, first_named
from odradek.coordinator.group.sessions import NOTHING_DECIDED
from odradek.coordinator.group.streams.configured_topology import ConfiguredTopology  # noqa: TC001  likewise
from odradek.coordinator.group.streams.explanations import task_moves
from odradek.coordinator.group.streams.group import NO_OFFSETS
from odradek.coordinator.group.streams.member import NO_TASKS, target_metadata_record, target_record
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.coordinator.group.streams.group import StreamsGroup
    from odradek.coordinator.group.streams.groups import StreamsGroups
    from odradek.coordinator.group.streams.member import StreamsGroupMember
    from odradek.coordinator.runtime.result import CoordinatorRecord

_NUM_STANDBY_REPLICAS = "num.standby.replicas"


class Target(NamedTuple):
    """The target of one member, and the epoch of the target assignment. ``delay`` is why a newer one is not computed yet."""

    epoch: int
    tasks: MemberTasks
    delay: str | None = None


class Basis(NamedTuple):
    """The state of the group that a target assignment is computed for."""

    epoch: int
    configured: ConfiguredTopology
    configs: Mapping[str, str]


def update_target(
    groups: StreamsGroups,
    group: StreamsGroup,
    basis: Basis,
    member: StreamsGroupMember,
    records: list[CoordinatorRecord],
) -> Target:
    """Return the target of ``member``, a new or updated one. Raises KafkaError: UNKNOWN_SERVER_ERROR if the assignor fails."""
    if groups.timers.is_scheduled(_initial_delay(group.group_id)):
        return Target(group.assignment_epoch, NO_TASKS, "Assignment delayed due to the configured initial rebalance delay.")
    assignment_epoch, computed_ms = group.target_metadata.get()
    now_ms = groups.clock.now_ms()
    interval_ms = groups.config_of(group.group_id).assignment_interval_ms
    is_too_early = computed_ms != 0 and interval_ms != 0 and now_ms < computed_ms + interval_ms
    if assignment_epoch >= basis.epoch or is_too_early:
        is_delayed = assignment_epoch < basis.epoch
        delay = "Assignment delayed due to the configured assignment interval." if is_delayed else None
        return Target(assignment_epoch, group.target_of(member.member_id, member.instance_id), delay)
    members = dict(group.members.items())
    replaced = None if member.instance_id is None else group.static_members.get(member.instance_id)
    if replaced is not None:
        members.pop(replaced, None)
    members[member.member_id] = member
    targets = _compute(groups, group, basis, members, records)
    return Target(basis.epoch, targets.get(member.member_id, NO_TASKS))


def _compute(
    groups: StreamsGroups,
    group: StreamsGroup,
    basis: Basis,
    members: Mapping[str, StreamsGroupMember],
    records: list[CoordinatorRecord],
) -> Mapping[str, MemberTasks]:
    """Return all targets, and note the records of those that change."""
    group_id = group.group_id
    targets = _assign(groups, group, basis, members) if basis.configured.is_ready else {}
    for member_id, member in members.items():
        target = targets.get(member_id, NO_TASKS)
        known = group.targets.get(member_id)
        if known is None and member.instance_id is not None and member_id not in group.members:
            # The heartbeat of a static member that is back has given it the target of its predecessor.
            known = group.targets.get(group.static_members.get(member.instance_id) or "")
        if target != known:
            records.append(target_record(group_id, member_id, target))
    records.append(target_metadata_record(group_id, basis.epoch, groups.clock.now_ms()))
    moves = task_moves(dict(group.targets.items()), targets, members.keys())
    groups.reports.info(
        "a target assignment was computed",
        group=group_id,
        epoch=basis.epoch,
        assignor=groups.assignor(group_id)[0],
        members=len(members),
        moved=len(moves),
        moves=first_named([str(move) for move in moves[: MOST_NAMED + 1]], len(moves)),
    )
    return targets


def _assign(
    groups: StreamsGroups, group: StreamsGroup, basis: Basis, members: Mapping[str, StreamsGroupMember]
) -> Mapping[str, MemberTasks]:
    name, assign = groups.assignor(group.group_id)
    specs = {
        member_id: StreamsMemberSpec(
            process_id=member.process_id or "",
            active_tasks=member.assigned.without_epochs().active,
            standby_tasks=member.assigned.standby,
            task_offsets=group.task_offsets.get(member_id, NO_OFFSETS).offsets,
        )
        for member_id, member in members.items()
    }
    spec = StreamsGroupSpec(members=specs, num_standby_replicas=int(basis.configs.get(_NUM_STANDBY_REPLICAS, "0")))
    about = {"group": group.group_id, "epoch": basis.epoch, "assignor": name}
    try:
        assigned = assign(spec, basis.configured)
    except Exception as failure:
        reason = f"{type(failure).__name__}: {failure}"
        groups.reports.warn("a target assignment failed", **about, error=reason)
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"Failed to compute a new target assignment for epoch {basis.epoch}: {failure}"
        ) from failure
    # Kafka 4.4 drops an assignor's warm-up tasks, too.
    return {member_id: MemberTasks(tasks.active, tasks.standby, {}) for member_id, tasks in assigned.items()}


def _initial_delay(group_id: str) -> tuple[str, str]:
    return "streams-initial-rebalance", group_id


def begin_initial_delay(groups: StreamsGroups, group_id: str) -> None:
    """Wait for more members before the first assignment of a group without members."""
    delay_ms = groups.config_of(group_id).initial_rebalance_delay_ms
    key = _initial_delay(group_id)
    if delay_ms > 0 and not groups.timers.is_scheduled(key):
        groups.timers.schedule(key, delay_ms, partial(_end_initial_delay, groups, group_id), retry=False)


def _end_initial_delay(groups: StreamsGroups, group_id: str) -> CoordinatorResult[None]:
    """Compute the first assignment. If the topology is not configured yet, the next heartbeat does it."""
    group = groups.find(group_id)
    configured = None if group is None else group.configured
    if group is None or configured is None or not group.members or group.epoch.get() <= group.assignment_epoch:
        return NOTHING_DECIDED
    records: list[CoordinatorRecord] = []
    basis = Basis(group.epoch.get(), configured, group.basis.get().configs)
    _compute(groups, group, basis, dict(group.members.items()), records)
    return CoordinatorResult(records, None)
