"""The effect of a member's request: its records, the group's epoch, the target, and the member's next step.

A heartbeat and a classic JoinGroup take the same steps:

    note         the member is written if it is new or changed; a change that concerns the group raises its epoch
    advance      the target assignment is computed, if it is outdated, and the member comes nearer to its target

The target assignment is computed for all members, and written for those whose target changes. The member's next step towards it
is a pure function, Kafka's ``CurrentAssignmentBuilder``.

For each topic, with an empty target if the member does not, or no longer, subscribe to it:

    kept        =  assigned  ∩  target
    to revoke   =  assigned  -  kept
    missing     =  target    -  kept
    free        =  missing   -  what another member still has
    unreleased  =  missing   -  free

While the member reports owning a partition to revoke, it stays in its epoch with ``kept``, and is asked to give the others up.
Then it enters the target's epoch with ``kept`` and ``free``, and waits if any partition is unreleased.

Sources: ``TargetAssignmentBuilder``, ``CurrentAssignmentBuilder`` and ``GroupMetadataManager.maybeUpdateTargetAssignment`` of
Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003  the type of a compiled dataclass's field
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import UUID  # noqa: TC003  the type of a compiled dataclass's field

from odradek.coordinator.group.assignor.spec import GroupSpec, MemberSubscription
from odradek.coordinator.group.consumer.member import (
    LEAVE_STATIC_EPOCH,
    NOTHING,
    NOTHING_OWNED,
    ConsumerMember,
    MemberState,
    OwnedEpochs,
    Partitions,
    assignment_record,
    check_transition,
    epoch_record,
    member_record,
    partition_metadata_tombstone,
    target_metadata_record,
    target_record,
)
from odradek.coordinator.group.consumer.regexes import RegexChange, update_regexes
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection

    from odradek.coordinator.group.assignor.spec import Assign
    from odradek.coordinator.group.consumer.group import ConsumerGroup
    from odradek.coordinator.group.consumer.groups import ConsumerGroups
    from odradek.coordinator.group.consumer.topics import SubscribedTopic
    from odradek.coordinator.runtime.result import CoordinatorRecord


def update_target(
    groups: ConsumerGroups,
    group: ConsumerGroup,
    epoch: int,
    old: ConsumerMember,
    new: ConsumerMember,
    records: list[CoordinatorRecord],
) -> tuple[int, Partitions]:
    """Return the epoch of the target assignment, and the target of ``new``, which replaces ``old``.

    The target is computed first if the group's epoch is newer, at most once per ``group.consumer.assignment.interval.ms``. The
    next heartbeat of any member checks again. Raises KafkaError: UNKNOWN_SERVER_ERROR if the assignor fails.
    """
    assignment_epoch, computed_ms = group.target_metadata.get()
    now_ms = groups.clock.now_ms()
    interval_ms = groups.config_of(group.group_id).assignment_interval_ms
    is_too_early = computed_ms != 0 and interval_ms != 0 and now_ms < computed_ms + interval_ms
    if assignment_epoch >= epoch or is_too_early:
        return assignment_epoch, group.target_of(new.member_id, new.instance_id)
    members = dict(group.members.items())
    replaced = None if new.instance_id is None else group.static_members.get(new.instance_id)
    if replaced is not None and replaced != new.member_id:
        members.pop(replaced, None)
        groups.why.note_successor(group.group_id, replaced, new.member_id)
    members[new.member_id] = new
    name, assign = groups.assignor(group.preferred_assignor(old, new))
    spec = _spec(groups, group, members, new)
    targets = _assign(groups, group.group_id, epoch, name, assign, spec)
    changed = [
        target_record(group.group_id, member_id, target)
        for member_id in members
        if (target := targets.get(member_id, NOTHING)) != group.targets.get(member_id)
    ]
    groups.why.note_target(group.group_id, epoch, name, dict(group.targets.items()), spec, targets)
    records += changed
    records.append(target_metadata_record(group.group_id, epoch, now_ms))
    return epoch, targets.get(new.member_id, NOTHING)


def _spec(groups: ConsumerGroups, group: ConsumerGroup, members: dict[str, ConsumerMember], new: ConsumerMember) -> GroupSpec:
    """Return the input of the assignor."""
    topics: dict[UUID, SubscribedTopic] = {}
    # Most members of a group subscribe to the same topics.
    known: dict[frozenset[str], frozenset[UUID]] = {}
    subscriptions = {}
    for member_id, member in members.items():
        names = group.names_of(member)
        ids = known.get(names)
        if ids is None:
            found = [topic for topic in map(groups.topics.find, names) if topic is not None]
            topics.update((topic.topic_id, topic) for topic in found)
            ids = known[names] = frozenset(topic.topic_id for topic in found)
        subscriptions[member_id] = MemberSubscription(
            topic_ids=ids,
            assignment=group.target_of(member_id, new.instance_id if member is new else None),
            instance_id=member.instance_id,
            rack_id=member.rack_id,
        )
    return GroupSpec(members=subscriptions, topics=topics, is_homogeneous=_is_homogeneous(members.values()))


def _is_homogeneous(members: Collection[ConsumerMember]) -> bool:
    """Return whether all subscribe to the same names, or to one regular expression and no names, as in Kafka."""
    names = {member.subscribed_topic_names for member in members}
    regexes = {member.subscribed_topic_regex or "" for member in members}
    return len(names) == 1 and (regexes == {""} or (len(regexes) == 1 and names == {frozenset()}))


def _assign(
    groups: ConsumerGroups, group_id: str, epoch: int, name: str, assign: Assign, spec: GroupSpec
) -> dict[str, Partitions]:
    """Return the targets by member id. Topics without partitions are left out."""
    try:
        return {
            member_id: {topic_id: frozenset(indexes) for topic_id, indexes in partitions.items() if indexes}
            for member_id, partitions in assign(spec).items()
        }
    except Exception as failure:
        # A third party's assignor may raise anything. The coordinator must go on.
        reason = f"{type(failure).__name__}: {failure}"
        groups.reports.warn("a target assignment failed", group=group_id, epoch=epoch, assignor=name, error=reason)
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the assignor failed for epoch {epoch}: {failure}") from failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """The inputs of the next step.

    Args:
        target_epoch: the epoch of the target assignment.
        target: the member's target.
        is_held: whether another member still has a partition.
        owned: the partitions that the member reports owning, None if it does not say.
        is_subscribed: whether the member subscribes to a topic.
        has_subscription_changed: whether it changed since the member's last heartbeat.
    """

    target_epoch: int
    target: Partitions
    is_held: Callable[[UUID, int], bool]
    owned: Partitions | None
    is_subscribed: Callable[[UUID], bool]
    has_subscription_changed: bool = False


def reconcile(member: ConsumerMember, given: Reconciliation) -> ConsumerMember:
    """Return the member after the step, or ``member`` itself if it cannot move.

    KafkaError: FENCED_MEMBER_EPOCH for a member in a state known only to a newer Kafka, unless it owns nothing.
    """
    if member.state is MemberState.UNKNOWN and (given.owned is None or given.owned):
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "a newer version wrote this member's state: give up all partitions and join again",
        )
    waits = member.state is MemberState.UNREVOKED_PARTITIONS and _owns_any(given, member.pending_revocation)
    if waits or member.is_reconciled_to(given.target_epoch):
        return _unsubscribed(member, given) if given.has_subscription_changed else member
    return _next(member, given)


def _owns_any(given: Reconciliation, partitions: OwnedEpochs) -> bool:
    """Return whether the member reports owning any of ``partitions``, or does not report what it owns."""
    if given.owned is None:
        return True
    return any(not partitions.get(topic_id, {}).keys().isdisjoint(indexes) for topic_id, indexes in given.owned.items())


def _unsubscribed(member: ConsumerMember, given: Reconciliation) -> ConsumerMember:
    """Revoke topics without a subscription at once. A target for the new subscription comes later.

    kept       =  assigned, of subscribed topics
    to revoke  =  to revoke before  +  (assigned - kept)
    """
    gone = [topic_id for topic_id in member.assigned if not given.is_subscribed(topic_id)]
    if not gone:
        return member
    kept = {topic_id: indexes for topic_id, indexes in member.assigned.items() if topic_id not in gone}
    revoked = dict(member.pending_revocation)
    for topic_id in gone:
        revoked[topic_id] = {**revoked.get(topic_id, {}), **member.assigned[topic_id]}
    if _owns_any(given, revoked):
        return _stepped(member, member.member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
    return _stepped(member, member.member_epoch, member.state, kept, member.pending_revocation)


def _next(member: ConsumerMember, given: Reconciliation) -> ConsumerMember:
    kept: dict[UUID, dict[int, int]] = {}
    revoked: dict[UUID, dict[int, int]] = {}
    free: dict[UUID, list[int]] = {}
    has_unreleased = False
    for topic_id in {**given.target, **member.assigned}:
        target = given.target.get(topic_id, frozenset()) if given.is_subscribed(topic_id) else frozenset()
        assigned = member.assigned.get(topic_id, {})
        own = member.pending_revocation.get(topic_id, {})
        for index, epoch in assigned.items():
            (kept if index in target else revoked).setdefault(topic_id, {})[index] = epoch
        for index in target.difference(assigned):
            if index not in own and given.is_held(topic_id, index):
                has_unreleased = True
            else:
                free.setdefault(topic_id, []).append(index)
    if revoked and _owns_any(given, revoked):
        return _stepped(member, member.member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
    for topic_id, indexes in free.items():
        kept.setdefault(topic_id, {}).update(dict.fromkeys(indexes, given.target_epoch))
    state = MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE
    return _stepped(member, given.target_epoch, state, kept, NOTHING_OWNED)


def _stepped(
    member: ConsumerMember, epoch: int, state: MemberState, assigned: OwnedEpochs, revoked: OwnedEpochs
) -> ConsumerMember:
    check_transition(member.member_id, member.state, state)
    return replace(
        member,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
        state=state,
        assigned=assigned,
        pending_revocation=revoked,
    )


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
        must_raise = (
            must_raise or names_changed or regex_change is RegexChange.UPDATED_AND_RESOLVED or self._moves_assignor(member)
        )
        return self._raise_epoch(member, must_raise=must_raise) if must_raise or group.is_stale else group.epoch.get()

    def _moves_assignor(self, member: ConsumerMember) -> bool:
        """Return whether the group has another assignor because a member of the consumer protocol prefers one."""
        old, group = self._old, self._group
        if old.server_assignor == member.server_assignor or member.classic is not None:
            return False
        names = (group.preferred_assignor(None, None), group.preferred_assignor(old, member))
        before, now = (self._groups.assignor(name)[0] for name in names)
        return before != now

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
        if self._moves_assignor(member):
            return f"{member.member_id} prefers another assignor"
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
            groups.begin_revocation(group.group_id, after)
        return after
