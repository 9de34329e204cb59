"""Faults of the coordinator that the simulation has to find: each spoils one rule of consumer groups, or of their conversion.

``python -m tests.campaigns.simulation.consumer_groups --mutations N`` plants one after the other, and searches N histories.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.consumer import (
    current_assignment,
    heartbeat,
    leave,
    member_step,
    regexes,
    target_assignment,
    validation,
)
from odradek.coordinator.group.consumer.group import ConsumerGroup
from odradek.coordinator.group.consumer.groups import ConsumerGroups
from odradek.coordinator.group.consumer.member import ConsumerMember
from odradek.coordinator.group.consumer.sessions import NOTHING_DECIDED, ConsumerSessions
from odradek.coordinator.group.migration import classic_members, downgrade, upgrade
from odradek.coordinator.runtime.hosted_shard import HostedShard
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.coordinator.runtime.timeline import SnapshotRegistry
from odradek.protocol.errors import ErrorCode
from tests.campaigns.simulation import planted
from tests.campaigns.simulation.consumer_groups import histories
from tests.campaigns.simulation.consumer_groups.checks import DEADLINES, NOT_RELEASED, OWNED_TWICE
from tests.campaigns.simulation.consumer_groups.ending import LEFT, REST, UNCHANGED
from tests.campaigns.simulation.consumer_groups.history import EPOCHS, KEPT, RELEASED
from tests.campaigns.simulation.consumer_groups.world import COMMITTED, KNOWN
from tests.campaigns.simulation.group_world import SERVED
from tests.campaigns.simulation.planted import Mutation
from tests.campaigns.simulation.replayed import REPLAYED

if TYPE_CHECKING:
    import pytest

    from odradek.coordinator.group.consumer.current_assignment import Reconciliation

TWICE = frozenset({OWNED_TWICE, NOT_RELEASED, RELEASED})


# ------------------------------------------------------------------------------------------------------------- assignments


def give_out_what_another_has(monkeypatch: pytest.MonkeyPatch) -> None:
    reconcile = current_assignment.reconcile

    def careless(member: ConsumerMember, given: Reconciliation) -> ConsumerMember:
        return reconcile(member, replace(given, is_held=lambda *_: False))

    monkeypatch.setattr(member_step, "reconcile", careless)


def take_a_revocation_for_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current_assignment, "_owns_any", lambda *_: False)


def take_silence_about_partitions_for_a_release(monkeypatch: pytest.MonkeyPatch) -> None:
    owns_any = current_assignment._owns_any
    monkeypatch.setattr(
        current_assignment, "_owns_any", lambda given, partitions: given.owned is not None and owns_any(given, partitions)
    )


def write_no_step_of_a_member(monkeypatch: pytest.MonkeyPatch) -> None:
    step = member_step.MemberStep.reconcile

    def forget(self: Any, *arguments: Any) -> ConsumerMember:
        records = len(self._records)
        after = step(self, *arguments)
        if self._old.member_epoch > 0:
            del self._records[records:]
        return after

    monkeypatch.setattr(member_step.MemberStep, "reconcile", forget)


def tell_an_assignment_once(monkeypatch: pytest.MonkeyPatch) -> None:
    beat = heartbeat.heartbeat

    def tell_less(groups: Any, context: Any, request: Any) -> Any:
        group = groups.find(request.group_id)
        before = None if group is None else group.members.get(request.member_id)
        result = beat(groups, context, request)
        known = before is not None and request.member_epoch > 0
        if known and not result.records and result.response.assignment is not None:
            return CoordinatorResult(result.records, result.response._replace(assignment=None))
        return result

    monkeypatch.setattr(heartbeat, "heartbeat", tell_less)


def leave_the_targets_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the member that asks is written a new target."""
    update = target_assignment.update_target

    def update_one(groups: Any, group: Any, epoch: int, old: Any, new: Any, records: list[Any]) -> Any:
        mine: list[Any] = []
        found = update(groups, group, epoch, old, new, mine)
        records += [each for each in mine if getattr(each.key, "member_id", new.member_id) == new.member_id]
        return found

    monkeypatch.setattr(member_step, "update_target", update_one)


# ------------------------------------------------------------------------------------------------------- epochs and fences


def take_commits_of_any_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    validate = ConsumerGroup.validate_offset_commit

    def accept(self: ConsumerGroup, *arguments: Any, **named: Any) -> ErrorCode:
        error = validate(self, *arguments, **named)
        return ErrorCode.NONE if error is ErrorCode.STALE_MEMBER_EPOCH else error

    monkeypatch.setattr(ConsumerGroup, "validate_offset_commit", accept)


def take_late_commits_of_what_came_since(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConsumerGroup, "permits_late_commit", lambda *_: True)


def take_commits_of_who_is_no_member(monkeypatch: pytest.MonkeyPatch) -> None:
    validate = ConsumerGroup.validate_offset_commit

    def accept(self: ConsumerGroup, *arguments: Any, **named: Any) -> ErrorCode:
        error = validate(self, *arguments, **named)
        return ErrorCode.NONE if error is ErrorCode.UNKNOWN_MEMBER_ID else error

    monkeypatch.setattr(ConsumerGroup, "validate_offset_commit", accept)


def fence_the_present_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    check = validation.check_epoch

    def misread(member: ConsumerMember, epoch: int, owned: Any) -> None:
        check(replace(member, member_epoch=member.member_epoch + 1) if member.pending_revocation else member, epoch, owned)

    monkeypatch.setattr(validation, "check_epoch", misread)


def raise_no_epoch_when_a_member_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    removal = leave.removal
    monkeypatch.setattr(leave, "removal", lambda groups, group, members: removal(groups, group, members)[:-1])


def delete_the_group_with_a_static_member(monkeypatch: pytest.MonkeyPatch) -> None:
    removal = leave.removal

    def remove(groups: Any, group: Any, members: Any) -> Any:
        records = removal(groups, group, members)
        return records + (group.tombstones()[-1:] if members[0].instance_id is not None else [])

    monkeypatch.setattr(leave, "removal", remove)


def begin_a_converted_group_at_the_first_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    epoch_record = upgrade.epoch_record
    monkeypatch.setattr(upgrade, "epoch_record", lambda group_id, _, metadata_hash: epoch_record(group_id, 1, metadata_hash))


# --------------------------------------------------------------------------------------------------------------- deadlines


def begin_no_sessions_with_a_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leave, "begin_sessions", lambda _: None)


def wait_for_revocations_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConsumerSessions, "begin_revocation", lambda *_: None)


def keep_members_that_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.coordinator.group.consumer.leave.expire_session", lambda *_: NOTHING_DECIDED)


# ------------------------------------------------------------------------------------------------------------------ topics


def see_no_topic_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConsumerGroups, "note_topics", lambda *_, **__: None)


def take_topics_as_fresh_after_a_load(monkeypatch: pytest.MonkeyPatch) -> None:
    init = ConsumerGroup.__init__

    def begin(self: ConsumerGroup, *arguments: Any) -> None:
        init(self, *arguments)
        self.fresh_epoch = 0

    monkeypatch.setattr(ConsumerGroup, "__init__", begin)


def resolve_expressions_once(monkeypatch: pytest.MonkeyPatch) -> None:
    note = ConsumerGroups.note_topics
    monkeypatch.setattr(ConsumerGroups, "note_topics", lambda self, changed, **_: note(self, changed, has_new=False))


def miss_the_topics_made_during_a_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mended fault."""
    take = ConsumerGroups.take_downgraded

    def miss(self: ConsumerGroups) -> list[str]:
        known = self.newest_topics_version
        found = take(self)
        self.newest_topics_version = known
        return found

    monkeypatch.setattr(ConsumerGroups, "take_downgraded", miss)


def raise_no_epoch_for_what_an_expression_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    take = regexes.take_resolved

    def take_quietly(groups: Any, group_id: str, *arguments: Any) -> Any:
        result = take(groups, group_id, *arguments)
        group = groups.find(group_id)
        if group is not None:
            group.fresh_epoch = group.epoch.get()
        return CoordinatorResult([each for each in result.records if "Regular" in type(each.key).__name__], None)

    monkeypatch.setattr(regexes, "take_resolved", take_quietly)


# --------------------------------------------------------------------------------------------------------- log and replay


def forget_what_is_to_be_revoked_in_a_load(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = ConsumerMember.with_assignment

    def forget(self: ConsumerMember, value: Any) -> ConsumerMember:
        return apply(self, value._replace(partitions_pending_revocation=()))

    monkeypatch.setattr(ConsumerMember, "with_assignment", forget)


def release_what_another_has_by_now(monkeypatch: pytest.MonkeyPatch) -> None:
    def release(self: ConsumerGroup, _: str, *owned: Any) -> None:
        for each in owned:
            for topic_id, indexes in each.items():
                for index in indexes:
                    self.holders.pop((topic_id, index))

    monkeypatch.setattr(ConsumerGroup, "_release", release)


def never_roll_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SnapshotRegistry, "roll_back", lambda *_: None)


def answer_before_the_high_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    flush = HostedShard.flush

    def flush_and_answer(hosted: Any) -> Any:
        error = flush(hosted)
        hosted._answers.commit(hosted._deferred.take_all())
        hosted._answers.deliver()
        return error

    monkeypatch.setattr(HostedShard, "flush", flush_and_answer)


# -------------------------------------------------------------------------------------------------------------- conversion


def convert_without_what_members_have(monkeypatch: pytest.MonkeyPatch) -> None:
    converted = upgrade._converted
    monkeypatch.setattr(upgrade, "_converted", lambda *arguments: replace(converted(*arguments), assigned={}))


def convert_without_what_members_say_to_own(monkeypatch: pytest.MonkeyPatch) -> None:
    read = upgrade.read_subscription
    monkeypatch.setattr(upgrade, "read_subscription", lambda metadata: read(metadata)._replace(owned=[]))


def upgrade_without_looking_at_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mended fault."""
    monkeypatch.setattr(heartbeat, "lags_behind_topics", lambda *_: False)


def downgrade_by_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mended fault."""
    convert = downgrade._convert

    def convert_targets(groups: Any, group: Any, members: Any, _: Any, decision: Any) -> Any:
        targets = {each.member_id: group.target_of(each.member_id, each.instance_id) for each in members}
        return convert(groups, group, members, targets, decision)

    monkeypatch.setattr(downgrade, "_convert", convert_targets)


def rebalance_no_downgraded_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downgrade, "prepare", lambda *_: None)


def have_no_classic_member_join_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classic_members, "_is_to_join", lambda *_: False)


def keep_a_static_members_former_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "member_tombstones", lambda *_: [])


def downgrade_to_an_older_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    record = downgrade.group_record

    def old_record(group: Any, assignments: Any) -> Any:
        group.generation -= 1
        return record(group, assignments)

    monkeypatch.setattr(downgrade, "group_record", old_record)


MUTATIONS = {
    each.plant.__name__: each
    for each in (
        Mutation(give_out_what_another_has, TWICE),
        Mutation(take_a_revocation_for_granted, TWICE),
        Mutation(take_silence_about_partitions_for_a_release, TWICE),
        Mutation(write_no_step_of_a_member, frozenset({COMMITTED})),
        Mutation(tell_an_assignment_once, frozenset({REST})),
        Mutation(leave_the_targets_of_others, frozenset({REST})),
        Mutation(take_commits_of_any_epoch, frozenset({SERVED})),
        Mutation(take_late_commits_of_what_came_since, frozenset({SERVED})),
        Mutation(take_commits_of_who_is_no_member, frozenset({SERVED})),
        Mutation(fence_the_present_epoch, frozenset({KNOWN})),
        Mutation(raise_no_epoch_when_a_member_goes, frozenset({REST})),
        Mutation(delete_the_group_with_a_static_member, frozenset({KEPT, LEFT})),
        Mutation(begin_a_converted_group_at_the_first_epoch, frozenset({EPOCHS})),
        Mutation(begin_no_sessions_with_a_load, frozenset({DEADLINES})),
        Mutation(wait_for_revocations_without_end, frozenset({DEADLINES})),
        Mutation(keep_members_that_are_silent, frozenset({DEADLINES})),
        Mutation(see_no_topic_change, frozenset({REST, UNCHANGED})),
        Mutation(take_topics_as_fresh_after_a_load, frozenset({REST})),
        Mutation(resolve_expressions_once, frozenset({REST, UNCHANGED})),
        Mutation(miss_the_topics_made_during_a_load, frozenset({REST}), 13552),
        Mutation(raise_no_epoch_for_what_an_expression_finds, frozenset({REST})),
        Mutation(forget_what_is_to_be_revoked_in_a_load, TWICE),
        Mutation(release_what_another_has_by_now, frozenset({REPLAYED})),
        Mutation(never_roll_back, TWICE | {REPLAYED, COMMITTED}),
        Mutation(answer_before_the_high_watermark, frozenset({COMMITTED})),
        Mutation(convert_without_what_members_have, TWICE),
        Mutation(convert_without_what_members_say_to_own, TWICE),
        Mutation(upgrade_without_looking_at_topics, frozenset({REST}), 17603),
        Mutation(downgrade_by_targets, TWICE, 303),
        Mutation(rebalance_no_downgraded_group, frozenset({REST}), 116),
        Mutation(have_no_classic_member_join_again, frozenset({REST})),
        Mutation(keep_a_static_members_former_id, TWICE),
        Mutation(downgrade_to_an_older_generation, frozenset({EPOCHS})),
    )
}


def search(name: str, most: int) -> tuple[int | None, Exception | None]:
    """The first seed, of so many, that finds what is planted, and what it finds."""
    return planted.search(MUTATIONS[name], histories.run, most)
