"""Faults of the coordinator that histories of groups have to find: of both protocols, of the conversion between them, of the log.

``python -m tests.campaigns.simulation.consumer_groups --mutations N`` plants one after the other, and searches N histories.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from odradek.coordinator.group import group_shard
from odradek.coordinator.group.classic import decision, groups, membership, rebalance
from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.classic.groups import Sessions
from odradek.coordinator.group.consumer import heartbeat as consumer_heartbeat
from odradek.coordinator.group.consumer import leave, member_step, regexes, validation
from odradek.coordinator.group.consumer.group import ConsumerGroup
from odradek.coordinator.group.consumer.groups import ConsumerGroups
from odradek.coordinator.group.consumer.member import ConsumerMember
from odradek.coordinator.group.migration import classic_members, conversion
from odradek.coordinator.group.modern_groups import ModernGroups
from odradek.coordinator.group.registry import GroupRegistry
from odradek.coordinator.group.sessions import NOTHING_DECIDED
from odradek.coordinator.runtime.hosted_shard import HostedShard
from odradek.coordinator.runtime.open_batch import Answers
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.coordinator.runtime.timeline import SnapshotRegistry
from odradek.protocol.coordinator_records import MemberMetadata
from odradek.protocol.errors import ErrorCode
from tests.campaigns.planted import Change, Faults, around
from tests.campaigns.simulation.groups import histories
from tests.campaigns.simulation.groups.checks import DEADLINES, NOT_RELEASED, OWNED_TWICE
from tests.campaigns.simulation.groups.ending import LEFT, REST, UNCHANGED
from tests.campaigns.simulation.groups.history import EPOCHS, KEPT, RELEASED
from tests.campaigns.simulation.groups.replayed import REPLAYED
from tests.campaigns.simulation.groups.world import COMMITTED, KNOWN, SERVED

if TYPE_CHECKING:
    from odradek.coordinator.group.consumer.member_step import Reconciliation

CLASSIC = Faults(histories.CLASSIC.run, most=300)
CONSUMER = Faults(histories.CONSUMER.run, most=40)
TWICE = (OWNED_TWICE, NOT_RELEASED, RELEASED)
_PARTS = "members of a generation hold parts of one assignment"
_NO_DEADLINE_LEFT = "no deadline is left of who is gone"
_FOR_EVER = "nobody waits for ever"
_SHOWN = "groups are shown as they are"


def _answered_before_the_high_watermark(flush: Any, hosted: Any) -> Any:
    error = flush(hosted)
    hosted._answers.commit(hosted._deferred.take_all())
    hosted._answers.deliver()
    return error


ANSWERED_EARLY = around(HostedShard, "flush", _answered_before_the_high_watermark)
NEVER_ROLLED_BACK = Change(SnapshotRegistry, "roll_back", lambda *_: None)
WITHOUT_TOMBSTONES = SimpleNamespace(member_tombstones=lambda *_: [])


# ---------------------------------------------------------------------------------------------------------- classic protocol


@CLASSIC.around(
    ClassicGroup, "begin_generation", "one assignment a generation", "generations only grow", "one leader a generation"
)
def begin_no_generation(begin: Any, group: ClassicGroup, now_ms: int) -> None:
    generation = group.generation
    begin(group, now_ms)
    group.generation = generation


# Few histories tell a failure as a success: the first is not far behind this one.
@CLASSIC.around(Answers, "fail", "who is told is told by a coordinator", first=675)
def tell_of_failures_as_of_success(_: Any, answers: Any, events: Any, error: Any) -> None:
    for event in events[::-1]:
        if event.result.on_failure is not None:
            event.result.on_failure(error)
    for event in events:
        answers.give(event.result.responses)
        answers.give([(event.reply, error)])


CLASSIC.put("keep_sessions_of_who_left", Sessions, "end", lambda *_: None, _NO_DEADLINE_LEFT)
CLASSIC.add(
    "keep_waiting_syncs",
    *(Change(module, "reset_assignments", lambda *_: None) for module in (membership, rebalance)),
    finds=(_FOR_EVER,),
)
CLASSIC.put("write_no_assignment", groups, "MemberMetadata", lambda *fields: MemberMetadata(*fields[:-1], b""), _PARTS)
CLASSIC.add("never_roll_back", NEVER_ROLLED_BACK, finds=(REPLAYED,))
# The effect of a failure that nobody is told of depends on who waited.
CLASSIC.put(
    "never_tell_of_failure",
    decision,
    "CoordinatorResult",
    lambda records, response, on_failure=None, **parts: CoordinatorResult(records, response, **parts),
    *("groups come to rest", _FOR_EVER, _NO_DEADLINE_LEFT, REPLAYED),
)
CLASSIC.put("hide_rebalances", membership, "_REBALANCING", membership._ALIVE, SERVED)
CLASSIC.put(
    "wait_for_joins_without_end", rebalance, "_wait_for_joins", lambda *_, **__: None, "each wait has a deadline, and no other"
)
CLASSIC.put(
    "show_groups_that_are_not_written",
    GroupRegistry,
    "find_at",
    lambda groups, group_id, _: groups.find(group_id),
    _SHOWN,
    first=3995,
)
CLASSIC.wrap(
    "list_no_empty_groups", GroupRegistry, "groups_at", lambda at, *which: (each for each in at(*which) if each.members), _SHOWN
)
CLASSIC.add("answer_before_the_high_watermark", ANSWERED_EARLY, finds=(_PARTS,))


# --------------------------------------------------------------------------------------------- consumer protocol: assignments


@CONSUMER.around(member_step, "reconcile", *TWICE)
def give_out_what_another_has(reconcile: Any, member: ConsumerMember, given: Reconciliation) -> Any:
    return reconcile(member, replace(given, is_held=lambda *_: False))


@CONSUMER.around(member_step, "_owns_any", *TWICE)
def take_silence_about_partitions_for_a_release(owns_any: Any, given: Any, partitions: Any) -> bool:
    return given.owned is not None and owns_any(given, partitions)


@CONSUMER.around(member_step.MemberStep, "reconcile", COMMITTED)
def write_no_step_of_a_member(step: Any, self: Any, *arguments: Any) -> Any:
    records = len(self._records)
    after = step(self, *arguments)
    if self._old.member_epoch > 0:
        del self._records[records:]
    return after


@CONSUMER.around(group_shard, "consumer_heartbeat", REST)
def tell_an_assignment_once(beat: Any, groups: Any, context: Any, request: Any) -> Any:
    group = groups.find(request.group_id)
    before = None if group is None else group.members.get(request.member_id)
    result = beat(groups, context, request)
    known = before is not None and request.member_epoch > 0
    if known and not result.records and result.response.assignment is not None:
        return CoordinatorResult(result.records, result.response._replace(assignment=None))
    return result


@CONSUMER.around(member_step, "update_target", REST)
def leave_the_targets_of_others(update: Any, groups: Any, group: Any, epoch: int, old: Any, new: Any, records: Any) -> Any:
    """Only the member that asks is written a new target."""
    mine: list[Any] = []
    found = update(groups, group, epoch, old, new, mine)
    records += [each for each in mine if getattr(each.key, "member_id", new.member_id) == new.member_id]
    return found


CONSUMER.put("take_a_revocation_for_granted", member_step, "_owns_any", lambda *_: False, *TWICE, is_rare=True)

# ---------------------------------------------------------------------------------------------------------- epochs and fences


def _taken_in_spite_of(code: ErrorCode) -> Any:
    def accept(validate: Any, *arguments: Any, **named: Any) -> ErrorCode:
        error: ErrorCode = validate(*arguments, **named)
        return ErrorCode.NONE if error is code else error

    return around(ConsumerGroup, "validate_offset_commit", accept)


@CONSUMER.around(validation, "check_epoch", KNOWN)
def fence_the_present_epoch(check: Any, member: ConsumerMember, epoch: int, owned: Any) -> None:
    check(replace(member, member_epoch=member.member_epoch + 1) if member.pending_revocation else member, epoch, owned)


@CONSUMER.around(leave, "removal", KEPT, LEFT)
def delete_the_group_with_a_static_member(removal: Any, groups: Any, group: Any, members: Any) -> Any:
    return removal(groups, group, members) + (group.tombstones()[-1:] if members[0].instance_id is not None else [])


CONSUMER.add("take_commits_of_any_epoch", _taken_in_spite_of(ErrorCode.STALE_MEMBER_EPOCH), finds=(SERVED,))
CONSUMER.add("take_commits_of_who_is_no_member", _taken_in_spite_of(ErrorCode.UNKNOWN_MEMBER_ID), finds=(SERVED,))
CONSUMER.put("take_late_commits_of_what_came_since", ConsumerGroup, "permits_late_commit", lambda *_: True, SERVED, is_rare=True)
CONSUMER.wrap("raise_no_epoch_when_a_member_goes", leave, "removal", lambda removal, *of: removal(*of)[:-1], REST)
CONSUMER.wrap(
    "begin_a_converted_group_at_the_first_epoch",
    conversion,
    "epoch_record",
    lambda record, group_id, _, metadata_hash: record(group_id, 1, metadata_hash),
    EPOCHS,
)

# ------------------------------------------------------------------------------------------------------ deadlines and topics


@CONSUMER.around(ConsumerGroup, "__init__", REST, is_rare=True)
def take_topics_as_fresh_after_a_load(init: Any, group: ConsumerGroup, *arguments: Any) -> None:
    init(group, *arguments)
    group.fresh_epoch = 0


# A mended fault.
@CONSUMER.around(ConsumerGroups, "take_downgraded", REST, first=13552)
def miss_the_topics_made_during_a_load(take: Any, groups: ConsumerGroups) -> Any:
    known = groups.newest_topics_version
    found = take(groups)
    groups.newest_topics_version = known
    return found


@CONSUMER.around(regexes, "take_resolved", REST, is_rare=True)
def raise_no_epoch_for_what_an_expression_finds(take: Any, groups: Any, group_id: str, *arguments: Any) -> Any:
    result = take(groups, group_id, *arguments)
    group = groups.find(group_id)
    if group is not None:
        group.fresh_epoch = group.epoch.get()
    return CoordinatorResult([each for each in result.records if "Regular" in type(each.key).__name__], None)


CONSUMER.put("begin_no_sessions_with_a_load", ModernGroups, "begin_sessions", lambda _: None, DEADLINES)
CONSUMER.put("wait_for_revocations_without_end", ModernGroups, "begin_revocation", lambda *_: None, DEADLINES)
CONSUMER.put("keep_members_that_are_silent", ModernGroups, "_expire_session", lambda *_: NOTHING_DECIDED, DEADLINES)
CONSUMER.put("see_no_topic_change", ConsumerGroups, "note_topics", lambda *_, **__: None, REST, UNCHANGED, is_rare=True)
CONSUMER.wrap(
    "resolve_expressions_once",
    ConsumerGroups,
    "note_topics",
    lambda note, self, changed, **_: note(self, changed, has_new=False),
    *(REST, UNCHANGED),
    is_rare=True,
)

# ------------------------------------------------------------------------------------------------------------ log and replay


@CONSUMER.around(ConsumerMember, "with_assignment", *TWICE)
def forget_what_is_to_be_revoked_in_a_load(apply: Any, member: ConsumerMember, value: Any) -> Any:
    return apply(member, value._replace(partitions_pending_revocation=()))


@CONSUMER.around(ConsumerGroup, "_release", REPLAYED, is_rare=True)
def release_what_another_has_by_now(_: Any, group: ConsumerGroup, __: str, *owned: Any) -> None:
    for topic_id, indexes in (item for each in owned for item in each.items()):
        for index in indexes:
            group.holders.pop((topic_id, index))


CONSUMER.add("never_roll_back", NEVER_ROLLED_BACK, finds=(*TWICE, REPLAYED, COMMITTED))
CONSUMER.add("answer_before_the_high_watermark", ANSWERED_EARLY, finds=(COMMITTED, _PARTS))

# ---------------------------------------------------------------------------------------------------------------- conversion


# A mended fault.
@CONSUMER.around(conversion, "_convert", *TWICE, first=303, is_rare=True)
def downgrade_by_targets(convert: Any, groups: Any, group: Any, members: Any, _: Any, decision: Any) -> Any:
    targets = {each.member_id: group.target_of(each.member_id, each.instance_id) for each in members}
    return convert(groups, group, members, targets, decision)


@CONSUMER.around(conversion, "group_record", EPOCHS)
def downgrade_to_an_older_generation(record: Any, group: Any, assignments: Any) -> Any:
    group.generation -= 1
    return record(group, assignments)


CONSUMER.wrap(
    "convert_without_what_members_have", conversion, "_converted", lambda make, *of: replace(make(*of), assigned={}), *TWICE
)
CONSUMER.wrap(
    "convert_without_what_members_say_to_own",
    conversion,
    "read_subscription",
    lambda read, metadata: read(metadata)._replace(owned=[]),
    *TWICE,
    is_rare=True,
)
# A mended fault.
CONSUMER.put("upgrade_without_looking_at_topics", consumer_heartbeat, "lags_behind_topics", lambda *_: False, REST, first=18099)
CONSUMER.put("rebalance_no_downgraded_group", conversion, "prepare", lambda *_: None, REST, first=116, is_rare=True)
CONSUMER.put("have_no_classic_member_join_again", classic_members, "_is_to_join", lambda *_: False, REST)
CONSUMER.put("keep_a_static_members_former_id", validation, "KEYS", WITHOUT_TOMBSTONES, *TWICE)
