"""A rebalance: from its cause to the generation that all members have joined, or to an empty group.

prepare        Empty, Stable, CompletingRebalance -> PreparingRebalance. Heartbeats tell members to join again.
               An Empty group waits for group.initial.rebalance.delay.ms, and once more as long as members keep arriving, up
               to the rebalance timeout. Other groups wait until all members have joined, or for the rebalance timeout.
complete_join  PreparingRebalance -> CompletingRebalance (answers the JoinGroups), or -> Empty (writes a record). Late members
               are removed, except static ones, which stay until their sessions end.
The leader's assignment then makes the group Stable (``membership``). Members that send no SyncGroup within the rebalance timeout
are removed, which begins the next rebalance.

If an append fails, the JoinGroups of its batch fail, and their clients send them again. A member whose JoinGroup failed counts as
not joined (``hold_join``). If a generation's answers fail, the next one begins (``_begin_again``).
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

from odradek.coordinator.group.classic.decision import Decision, join_error, joined, sync_error
from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.classic.groups import NOTHING, ClassicGroups, group_record
from odradek.coordinator.group.classic.member import JoinReply, Member
from odradek.coordinator.group.classic.states import GroupState, RebalanceCause, RebalanceNotes, named
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.sync_group import SyncGroupResponse

# Clients may choose a rebalance timeout of 0. It must not keep the loop busy while no member joins.
_WAIT_ON_MS: Final = 1_000


def prepare(groups: ClassicGroups, group: ClassicGroup, cause: RebalanceCause, why: str, decision: Decision) -> None:
    """Begin a rebalance. A rebalance that waits for its leader's assignment is abandoned."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        reset_assignments(groups, group, ErrorCode.REBALANCE_IN_PROGRESS, decision)
        _note_abandoned(groups, group, why)
    stop_waiting_for_syncs(groups, group)
    group.notes = RebalanceNotes(cause, why, groups.clock.monotonic_ms())
    groups.counters.note_begun(cause)
    is_initial = group.state is GroupState.EMPTY
    group.new_member_added = False
    group.transition_to(GroupState.PREPARING_REBALANCE, groups.clock.now_ms())
    if is_initial:
        delay_ms = groups.config().group_initial_rebalance_delay_ms
        _delay_completion(groups, group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
    elif group.has_all_members_joined:
        complete_join(groups, group, decision)
    else:
        _wait_for_joins(groups, group)


def hold_join(groups: ClassicGroups, group: ClassicGroup, member: Member, reply: JoinReply, decision: Decision) -> None:
    """Hold a member's JoinGroup until the rebalance ends, or the append of its batch fails."""
    group.hold_join(member, reply)

    def take_back(_: KafkaError) -> None:
        if not groups.is_live(group) or member.waiting_join is not reply:
            return
        # The runtime fails the reply.
        group.release_join(member)
        _await_again(groups, group, [member])
        go_on(groups, group)

    decision.on_failure(take_back)


def go_on(groups: ClassicGroups, group: ClassicGroup) -> None:
    """Submit an operation that ends the wait for JoinGroups if none is missing now that a failure hook removed a member."""

    def decide() -> CoordinatorResult[None]:
        decision = Decision()
        if groups.is_live(group):
            complete_if_all_joined(groups, group, decision)
        return decision.result(None)

    groups.timers.write(decide)


def complete_if_all_joined(groups: ClassicGroups, group: ClassicGroup, decision: Decision) -> None:
    """End the wait for JoinGroups if all members have joined. An initial rebalance still waits for its delay."""
    if (
        group.state is GroupState.PREPARING_REBALANCE
        and group.previous_state is not GroupState.EMPTY
        and group.has_all_members_joined
    ):
        complete_join(groups, group, decision)


def complete_join(groups: ClassicGroups, group: ClassicGroup, decision: Decision) -> None:
    """Continue without late members. Keep waiting if only static members are left and none of them has joined."""
    groups.timers.cancel(_join_key(group))
    for member in [member for member in group.members.values() if member.waiting_join is None and not member.is_static]:
        group.remove(member.member_id)
        groups.sessions.end(group, member.member_id)
    if group.members and not group.elect_leader():
        groups.reports.warn("a rebalance keeps waiting: no member has joined", group=group.group_id, members=len(group.members))
        _wait_for_joins(groups, group, at_least_ms=_WAIT_ON_MS)
        return
    group.begin_generation(groups.clock.now_ms())
    if group.members:
        _answer_joins(groups, group, decision)
    else:
        _become_empty(groups, group, decision)


def reset_assignments(groups: ClassicGroups, group: ClassicGroup, error_code: ErrorCode, decision: Decision) -> None:
    """Remove all assignments, and answer the SyncGroups that wait for them with ``error_code``."""
    for member in group.members.values():
        member.assignment = b""
        answer_sync(groups, group, member, sync_error(error_code), decision)


def answer_sync(
    groups: ClassicGroups, group: ClassicGroup, member: Member, response: SyncGroupResponse, decision: Decision
) -> None:
    """Answer a member's held SyncGroup, if any."""
    if member.waiting_sync is not None:
        decision.answer(member.waiting_sync, response)
        member.waiting_sync = None
        # A session that runs out while its member waits is ignored (``may_be_silent``).
        groups.sessions.touch(group, member)


def stop_waiting_for_syncs(groups: ClassicGroups, group: ClassicGroup) -> None:
    """Clear the list of awaited SyncGroups and drop their deadline."""
    group.pending_syncs.clear()
    groups.timers.cancel(_sync_key(group))


def stop_waiting(groups: ClassicGroups, group: ClassicGroup) -> None:
    """Drop the deadlines of a group that is given up."""
    groups.timers.cancel(_join_key(group))
    stop_waiting_for_syncs(groups, group)


def give_up(groups: ClassicGroups, group: ClassicGroup, decision: Decision, error: KafkaError) -> None:
    """Forget a new group whose records could not be appended."""
    groups.reports.warn("cannot write a new group", group=group.group_id, error=error.code.name)
    groups.discard(group)
    stop_waiting(groups, group)
    for member_id in (*group.members, *group.pending_joins):
        groups.sessions.end(group, member_id)
    for member in group.members.values():
        decision.answer(group.release_join(member), join_error(error.code))


def rebalance_downgraded(groups: ClassicGroups, group_id: str) -> None:
    """Rebalance a loaded group that has not rebalanced since its downgrade: members that left then had partitions."""
    group = groups.find(group_id)
    if group is not None and group.state is GroupState.STABLE:
        # As in shrink_to_capacity, no response is due.
        prepare(groups, group, RebalanceCause.DOWNGRADED, "loaded after its conversion from a consumer group", Decision())


def note_stable(groups: ClassicGroups, group: ClassicGroup) -> None:
    """Count and report a rebalance that ended in a stable group."""
    now_ms = groups.clock.monotonic_ms()
    if group.notes is not None:
        groups.counters.note_completed(now_ms - group.notes.started_ms, now_ms)
    _log_end(groups, group, "rebalance completed")
    group.settled_members = frozenset(group.members)
    group.notes = None


def expire_member(groups: ClassicGroups, group_id: str, member_id: str) -> CoordinatorResult[None]:
    """Handle the end of a member's session, or of the time to use a new member id."""
    group = groups.find(group_id)
    if group is None:
        return NOTHING
    decision = Decision()
    if member_id in group.pending_joins:
        group.remove(member_id)
        _complete_if_last_was_missing(groups, group, decision)
        return decision.result(None)
    member = group.members.get(member_id)
    if member is None or member.may_be_silent:
        return NOTHING
    groups.counters.sessions_expired += 1
    # A client that never learned its member id joins as a new member, if it is still alive.
    decision.answer(group.release_join(member), join_error(ErrorCode.UNKNOWN_MEMBER_ID))
    group.remove(member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        _complete_if_last_was_missing(groups, group, decision)
    else:
        why = f"member {member_id} sent no heartbeat for its session timeout of {member.session_timeout_ms} ms"
        prepare(groups, group, RebalanceCause.SESSION_EXPIRED, why, decision)
    return decision.result(None)


def shrink_to_capacity(groups: ClassicGroups, group: ClassicGroup) -> None:
    """Rebalance a loaded group with more than group.max.size members; the rebalance refuses the last to join."""
    limit = groups.config().group_max_size
    if len(group.members) > limit:
        why = f"loaded with {len(group.members)} members, but group.max.size is {limit}"
        # No JoinGroup is held yet, so the decision has neither records nor responses.
        prepare(groups, group, RebalanceCause.OVER_CAPACITY, why, Decision())


def _complete_if_last_was_missing(groups: ClassicGroups, group: ClassicGroup, decision: Decision) -> None:
    if group.state is GroupState.PREPARING_REBALANCE and group.has_all_members_joined:
        complete_join(groups, group, decision)


def _answer_joins(groups: ClassicGroups, group: ClassicGroup, decision: Decision) -> None:
    newcomers = [member for member in group.members.values() if member.is_nameless]
    decision.on_failure(partial(_begin_again, groups, group, group.generation))
    decision.on_commit(partial(_note_named, newcomers))
    for member in group.members.values():
        decision.answer(group.release_join(member), joined(group, member.member_id))
        member.is_new = False
        groups.sessions.touch(group, member)
        group.pending_syncs[member.member_id] = None
    expire = partial(_expire_syncs, groups, group.group_id, group.generation)
    groups.timers.schedule(_sync_key(group), group.rebalance_timeout_ms, expire, retry=False)


def _begin_again(groups: ClassicGroups, group: ClassicGroup, generation: int, error: KafkaError) -> None:
    """Begin another rebalance, as the answers of ``generation`` failed. Its members get the error and must join again."""

    def decide() -> CoordinatorResult[None]:
        decision = Decision()
        if groups.is_live(group) and group.state is GroupState.COMPLETING_REBALANCE and group.generation == generation:
            _await_again(groups, group, list(group.members.values()))
            why = f"generation {generation} could not be sent to its members: {error.code.name}"
            prepare(groups, group, RebalanceCause.APPEND_FAILED, why, decision)
        return decision.result(None)

    groups.timers.write(decide)


def _await_again(groups: ClassicGroups, group: ClassicGroup, members: Iterable[Member]) -> None:
    """Prepare for members whose JoinGroups failed: they join again, under their known member id or as new members."""
    for member in members:
        if member.is_nameless:
            group.remove(member.member_id)
            groups.sessions.end(group, member.member_id)
        else:
            member.is_new = False
            groups.sessions.touch(group, member)


def _note_named(members: Iterable[Member]) -> None:
    for member in members:
        member.is_nameless = False


def _become_empty(groups: ClassicGroups, group: ClassicGroup, decision: Decision) -> None:
    decision.records.append(group_record(group, {}))
    decision.on_failure(
        # The previous generation stays stored. If the broker restarts, its members' sessions expire once more.
        lambda error: groups.reports.warn("cannot write an empty group", group=group.group_id, error=error.code.name)
    )
    _log_end(groups, group, "rebalance left the group empty")
    group.settled_members = frozenset()
    group.notes = None


def _wait_for_joins(groups: ClassicGroups, group: ClassicGroup, at_least_ms: int = 0) -> None:
    expire = partial(_expire_joins, groups, group.group_id)
    groups.timers.schedule(_join_key(group), max(group.rebalance_timeout_ms, at_least_ms), expire, retry=False)


def _expire_joins(groups: ClassicGroups, group_id: str) -> CoordinatorResult[None]:
    decision = Decision()
    group = groups.find(group_id)
    if group is not None and group.state is GroupState.PREPARING_REBALANCE:
        complete_join(groups, group, decision)
    return decision.result(None)


def _delay_completion(groups: ClassicGroups, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
    end = partial(_end_delay, groups, group.group_id, delay_ms, remaining_ms)
    groups.timers.schedule(_join_key(group), delay_ms, end, retry=False)


def _end_delay(groups: ClassicGroups, group_id: str, delay_ms: int, remaining_ms: int) -> CoordinatorResult[None]:
    """End the initial delay. If members joined during it, begin another one, within the rebalance timeout."""
    group = groups.find(group_id)
    if group is None or group.state is not GroupState.PREPARING_REBALANCE:
        return NOTHING
    if group.new_member_added and remaining_ms:
        group.new_member_added = False
        next_delay_ms = min(groups.config().group_initial_rebalance_delay_ms, remaining_ms)
        _delay_completion(groups, group, next_delay_ms, max(remaining_ms - delay_ms, 0))
        return NOTHING
    decision = Decision()
    complete_join(groups, group, decision)
    return decision.result(None)


def _expire_syncs(groups: ClassicGroups, group_id: str, generation: int) -> CoordinatorResult[None]:
    """Continue without the members that did not send their SyncGroup in time."""
    group = groups.find(group_id)
    if group is None or group.generation != generation or not group.pending_syncs:
        return NOTHING
    late = list(group.pending_syncs)
    for member_id in late:
        group.remove(member_id)
        groups.sessions.end(group, member_id)
    decision = Decision()
    why = f"no SyncGroup came in time from {', '.join(named(late))}"
    prepare(groups, group, RebalanceCause.SYNC_EXPIRED, why, decision)
    return decision.result(None)


def _note_abandoned(groups: ClassicGroups, group: ClassicGroup, why: str) -> None:
    groups.counters.rebalances_abandoned += 1
    _log_end(groups, group, "rebalance abandoned", abandoned_because=why)


def _log_end(groups: ClassicGroups, group: ClassicGroup, event: str, **fields: object) -> None:
    notes = group.notes
    if notes is None:
        return
    groups.reports.info(
        event,
        group=group.group_id,
        generation=group.generation,
        cause=notes.cause.value,
        why=notes.why,
        members=len(group.members),
        joined=named(group.members.keys() - group.settled_members),
        left=named(group.settled_members.difference(group.members)),
        took_ms=round(groups.clock.monotonic_ms() - notes.started_ms, 3),
        **fields,
    )


def _join_key(group: ClassicGroup) -> tuple[str, str]:
    return ("join", group.group_id)


def _sync_key(group: ClassicGroup) -> tuple[str, str]:
    return ("sync", group.group_id)
