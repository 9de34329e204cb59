"""The effect of a member's request: its records, the group's epoch, the target, and the member's next step.

A heartbeat and a classic JoinGroup take the same steps:

    note         the member is written if it is new or changed; a change that concerns the group raises its epoch
    advance      the target assignment is computed, if it is outdated, and the member comes nearer to its target
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.group.consumer.current_assignment import Reconciliation, reconcile
from odradek.coordinator.group.consumer.leave import begin_revocation
from odradek.coordinator.group.consumer.member import LEAVE_STATIC_EPOCH
from odradek.coordinator.group.consumer.records import (
    assignment_record,
    epoch_record,
    member_record,
    partition_metadata_tombstone,
)
from odradek.coordinator.group.consumer.regexes import RegexChange, update_regexes
from odradek.coordinator.group.consumer.states import MemberState
from odradek.coordinator.group.consumer.target_assignment import update_target

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from odradek.coordinator.group.consumer.group import ConsumerGroup
    from odradek.coordinator.group.consumer.groups import ConsumerGroups
    from odradek.coordinator.group.consumer.member import ConsumerMember, Partitions
    from odradek.coordinator.runtime.record import CoordinatorRecord


class MemberStep:
    """One request of a known or new member, which was ``old`` before it. Records to write are added to ``records``."""

    __slots__ = ("_group", "_groups", "_has_subscription_changed", "_may_see", "_old", "_records")

    def __init__(
        self,
        groups: ConsumerGroups,
        group: ConsumerGroup,
        old: ConsumerMember,
        records: list[CoordinatorRecord],
        may_see: Callable[[str], bool] | None = None,
    ) -> None:
        self._groups = groups
        self._group = group
        self._old = old
        self._records = records
        self._may_see = may_see
        self._has_subscription_changed = False

    def note(self, member: ConsumerMember, *, must_raise: bool = False) -> int:
        """Note the updated ``member`` (the same object as the old one if unchanged). Return the group's new epoch.

        ``must_raise`` raises the epoch in any case.
        """
        group, groups, old = self._group, self._groups, self._old
        names_changed = False
        if member is not old:
            self._records.append(member_record(group.group_id, member))
            names_changed = member.subscribed_topic_names != old.subscribed_topic_names
        regex_change = RegexChange.NONE
        if member.subscribed_topic_regex or old.subscribed_topic_regex or group.regex_counts:
            regex_change = update_regexes(groups, group, old, member, self._records, self._may_see)
        self._has_subscription_changed = names_changed or regex_change is not RegexChange.NONE
        must_raise = must_raise or names_changed or regex_change is RegexChange.UPDATED_AND_RESOLVED
        return self._raise_epoch(member, must_raise=must_raise) if must_raise or group.is_stale else group.epoch.get()

    def advance(self, member: ConsumerMember, epoch: int, owned: Partitions | None) -> ConsumerMember:
        """Return the member after its next step, in a group of ``epoch``."""
        assignment_epoch, target = update_target(self._groups, self._group, epoch, self._old, member, self._records)
        return self.reconcile(member, assignment_epoch, target, owned)

    def _raise_epoch(self, member: ConsumerMember, *, must_raise: bool) -> int:
        """Read the group's future topics. Return its epoch, raised if the topics changed or ``must_raise``."""
        group, groups, old = self._group, self._groups, self._old
        epoch = group.epoch.get()
        names = {name for name in group.name_counts if name not in old.subscribed_topic_names}
        names |= {name for name in old.subscribed_topic_names if (group.name_counts.get(name) or 0) > 1}
        names |= member.subscribed_topic_names
        regexes = set(group.regex_counts)
        before, now = old.subscribed_topic_regex, member.subscribed_topic_regex
        if before and before != now and group.regex_counts.get(before) == 1:
            regexes.discard(before)
        if now:
            regexes.add(now)
        metadata_hash = groups.metadata_hash(names.union(*map(group.names_matching, regexes)))
        if must_raise or metadata_hash != group.metadata_hash.get():
            epoch += 1
            self._records.append(epoch_record(group.group_id, epoch, metadata_hash))
            groups.why.note_raised(group.group_id, self._cause(member, must_raise=must_raise))
        group.fresh_epoch = epoch
        if group.has_partition_metadata.get():
            self._records.append(partition_metadata_tombstone(group.group_id))
        return epoch

    def _cause(self, member: ConsumerMember, *, must_raise: bool) -> str:
        """Return the reason for raising the group's epoch."""
        old = self._old
        if not must_raise:
            return "its topics have changed"
        if old.member_id not in self._group.members or old.member_epoch == LEAVE_STATIC_EPOCH:
            return f"{member.member_id} joined"
        if self._has_subscription_changed:
            return f"{member.member_id} subscribes to other topics"
        return f"{member.member_id} joined again"

    def reconcile(
        self, member: ConsumerMember, assignment_epoch: int, target: Partitions, owned: Partitions | None
    ) -> ConsumerMember:
        """Return the member one step nearer to ``target``. ``owned`` is what it reports owning, None if it does not say."""
        group, groups = self._group, self._groups
        if not self._has_subscription_changed and member.is_reconciled_to(assignment_epoch):
            return member
        names = group.names_of(member)
        # A returning static member has its predecessor's partitions; the records of the change are still to be replayed.
        own = {member.member_id, group.static_members.get(member.instance_id or "")}

        def is_held(topic_id: UUID, index: int) -> bool:
            holder = group.holders.get((topic_id, index))
            return holder is not None and holder not in own

        given = Reconciliation(
            target_epoch=assignment_epoch,
            target=target,
            is_held=is_held,
            owned=owned,
            is_subscribed=lambda topic_id: groups.topics.name_of(topic_id) in names,
            has_subscription_changed=self._has_subscription_changed,
        )
        after = reconcile(member, given)
        if after is not member and after != member:
            self._records.append(assignment_record(group.group_id, after))
            groups.why.note_given_up(group.group_id, self._old, after)
            if after.classic is not None:
                # A classic member has the join and sync timeouts instead.
                return after
            if after.state is MemberState.UNREVOKED_PARTITIONS:
                begin_revocation(groups, group.group_id, after)
        return after
