"""Faults of the coordinator that histories of streams groups have to find: of assignments, epochs, deadlines, and of the log.

``python -m tests.campaigns.simulation.streams --mutations N`` plants one after the other, and searches N histories.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.modern_groups import ModernGroups
from odradek.coordinator.group.sessions import NOTHING_DECIDED
from odradek.coordinator.group.streams import heartbeat, leave, target, validation
from odradek.coordinator.group.streams.group import StreamsGroup
from odradek.coordinator.group.streams.member import NOTHING_OWNED, StreamsGroupMember
from odradek.coordinator.group.streams.reconciliation import Reconciliation
from odradek.coordinator.group.streams.topology import StreamsTopology
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.errors import ErrorCode
from tests.campaigns.planted import Faults, around
from tests.campaigns.simulation.groups.checks import DEADLINES
from tests.campaigns.simulation.groups.ending import LEFT, REST, UNCHANGED
from tests.campaigns.simulation.groups.history import EPOCHS, KEPT
from tests.campaigns.simulation.groups.mutations import ANSWERED_EARLY, NEVER_ROLLED_BACK, TWICE, WITHOUT_TOMBSTONES
from tests.campaigns.simulation.groups.replayed import REPLAYED
from tests.campaigns.simulation.groups.world import COMMITTED, KNOWN, SERVED
from tests.campaigns.simulation.streams import histories
from tests.campaigns.simulation.streams.checks import HOLDERS, ROLES
from tests.campaigns.simulation.streams.world import SHUTDOWN

if TYPE_CHECKING:
    from odradek.coordinator.group.streams.member import OwnedTasks

FAULTS = Faults(histories.SIMULATION.run, most=40)

# ------------------------------------------------------------------------------------------------------------- assignments


@FAULTS.around(heartbeat, "reconcile", *TWICE)
def give_out_what_another_runs(reconcile: Any, member: StreamsGroupMember, given: Reconciliation) -> Any:
    return reconcile(member, replace(given, active_process=lambda _: None))


@FAULTS.around(heartbeat, "reconcile", ROLES)
def give_a_process_a_task_in_two_roles(reconcile: Any, member: StreamsGroupMember, given: Reconciliation) -> Any:
    return reconcile(member, replace(given, standby_processes=lambda _: frozenset()))


@FAULTS.around(Reconciliation, "has_kept_any", *TWICE)
def take_silence_about_tasks_for_a_release(has_kept: Any, given: Reconciliation, tasks: OwnedTasks) -> bool:
    return given.owned is not None and has_kept(given, tasks)


@FAULTS.around(heartbeat._Heartbeat, "_reconciled", COMMITTED)
def write_no_step_of_a_member(step: Any, beat: Any, *arguments: Any) -> Any:
    records = len(beat._records)
    after = step(beat, *arguments)
    if beat._old.member_epoch > 0:
        del beat._records[records:]
    return after


@FAULTS.around(heartbeat._Heartbeat, "_response", REST)
def tell_an_assignment_once(respond: Any, beat: Any, member: StreamsGroupMember, configured: Any) -> Any:
    response = respond(beat, member, configured)
    is_new = beat._request.member_epoch == 0 or member.assigned != beat._old.assigned
    return response if is_new else response._replace(active_tasks=None, standby_tasks=None, warmup_tasks=None)


@FAULTS.around(target, "_assign", REST)
def leave_one_task_out(assign: Any, *arguments: Any) -> Any:
    targets = dict(assign(*arguments))
    member_id = max(targets)
    active = {subtopology_id: tasks - {0} for subtopology_id, tasks in targets[member_id].active.items()}
    targets[member_id] = targets[member_id]._replace(active=active)
    return targets


# ---------------------------------------------------------------------------------------------------------- epochs and fences


def _taken_in_spite_of(code: ErrorCode) -> Any:
    def accept(validate: Any, *arguments: Any, **named: Any) -> ErrorCode:
        error: ErrorCode = validate(*arguments, **named)
        return ErrorCode.NONE if error is code else error

    return around(StreamsGroup, "validate_offset_commit", accept)


@FAULTS.around(validation, "_check_epoch", KNOWN)
def fence_the_present_epoch(check: Any, member: StreamsGroupMember, request: Any) -> None:
    is_revoking = member.pending_revocation != NOTHING_OWNED
    check(replace(member, member_epoch=member.member_epoch + 1) if is_revoking else member, request)


@FAULTS.around(leave, "_removed", KEPT, LEFT)
def delete_the_group_with_a_static_member(removed: Any, groups: Any, group: Any, member: Any, *arguments: Any) -> Any:
    result = removed(groups, group, member, *arguments)
    extra = group.tombstones()[-2:-1] if member.instance_id is not None else []
    return CoordinatorResult([*result.records, *extra], result.response)


FAULTS.add("take_commits_of_any_epoch", _taken_in_spite_of(ErrorCode.STALE_MEMBER_EPOCH), finds=(SERVED,))
FAULTS.add("take_commits_of_who_is_no_member", _taken_in_spite_of(ErrorCode.UNKNOWN_MEMBER_ID), finds=(SERVED,))
FAULTS.put("take_late_commits_of_what_came_since", StreamsGroup, "permits_late_commit", lambda *_: True, SERVED, is_rare=True)
FAULTS.put("take_members_of_another_topology", StreamsTopology, "is_same", lambda *_: True, SERVED)
FAULTS.put("keep_a_static_members_former_id", validation, "KEYS", WITHOUT_TOMBSTONES, *TWICE)
FAULTS.wrap(
    "go_back_to_the_first_epoch", leave, "epoch_record", lambda record, group_id, _, *rest: record(group_id, 2, *rest), EPOCHS
)


@FAULTS.around(leave, "_removed", REST)
def raise_no_epoch_when_a_member_goes(removed: Any, *arguments: Any) -> Any:
    result = removed(*arguments)
    return CoordinatorResult(result.records[:3], result.response)


# ------------------------------------------------------------------------------------------------------ deadlines and topics

FAULTS.put("begin_no_sessions_with_a_load", ModernGroups, "begin_sessions", lambda _: None, DEADLINES)
FAULTS.put("wait_for_revocations_without_end", ModernGroups, "begin_revocation", lambda *_: None, DEADLINES)
FAULTS.put("keep_members_that_are_silent", ModernGroups, "_expire_session", lambda *_: NOTHING_DECIDED, DEADLINES)
FAULTS.put("see_no_topic_change", ModernGroups, "note_topics", lambda *_: None, REST, UNCHANGED)
FAULTS.put("tell_nobody_of_a_shutdown", heartbeat, "note_shutdown", lambda *_: None, SHUTDOWN)

# ------------------------------------------------------------------------------------------------------------ log and replay


@FAULTS.around(StreamsGroupMember, "with_assignment", *TWICE, HOLDERS, REPLAYED)
def forget_what_is_to_be_given_up(apply: Any, member: StreamsGroupMember, value: Any) -> Any:
    return apply(member, value._replace(active_tasks_pending_revocation=()))


# A mended fault.
@FAULTS.around(StreamsGroup, "_release", HOLDERS, REPLAYED, first=1018)
def release_what_another_of_the_process_has_by_now(release: Any, group: StreamsGroup, member: StreamsGroupMember) -> None:
    release(group, member)
    for subtopology_id, indexes in member.assigned.active.items():
        for task in ((subtopology_id, index) for index in indexes):
            if group.active_process(task) == member.process_id:
                group.active_holders.pop(task)


FAULTS.put("keep_the_tasks_of_who_left", StreamsGroup, "_release", lambda *_: None, HOLDERS)
FAULTS.add("never_roll_back", NEVER_ROLLED_BACK, finds=(*TWICE, REPLAYED, COMMITTED, KNOWN))
FAULTS.add("answer_before_the_high_watermark", ANSWERED_EARLY, finds=(COMMITTED,))
