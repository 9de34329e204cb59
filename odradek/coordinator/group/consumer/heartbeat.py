"""ConsumerGroupHeartbeat: a member joins, tells what it subscribes to and owns, and is told what it may have.

    1. the member is taken in or updated; what changes for the group raises its epoch
    2. the target assignment is computed, if it is older than the group
    3. the member comes nearer to its target

A full heartbeat, and one that changes what the member may have, is answered with the assignment; any other without.

Source: ``GroupMetadataManager.consumerGroupHeartbeat`` of Apache Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.consumer.current_assignment import Reconciliation, reconcile
from odradek.coordinator.group.consumer.leave import begin_revocation, leave_group
from odradek.coordinator.group.consumer.records import (
    assignment_record,
    epoch_record,
    member_record,
    partition_metadata_tombstone,
)
from odradek.coordinator.group.consumer.regexes import RegexChange, update_regexes
from odradek.coordinator.group.consumer.states import MemberState
from odradek.coordinator.group.consumer.target_assignment import update_target
from odradek.coordinator.group.consumer.validation import check_request, check_room, dynamic_member, static_member
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from uuid import UUID

    from odradek.coordinator.group.config import MemberContext
    from odradek.coordinator.group.consumer.group import ConsumerGroup
    from odradek.coordinator.group.consumer.groups import ConsumerGroups
    from odradek.coordinator.group.consumer.member import ConsumerMember, Partitions
    from odradek.coordinator.runtime.record import CoordinatorRecord


def heartbeat(
    groups: ConsumerGroups, context: MemberContext, request: ConsumerGroupHeartbeatRequest
) -> CoordinatorResult[ConsumerGroupHeartbeatResponse]:
    """Decide on a ConsumerGroupHeartbeat. Raises KafkaError for all that it is refused for. HOT."""
    check_request(request, context.version, groups.assignor_names)
    if request.member_epoch < 0:
        return leave_group(groups, request)
    records: list[CoordinatorRecord] = []
    group = _group_of(groups, request, records)
    config = groups.config_of(request.group_id)
    check_room(group, request.member_id, config.max_size)
    member_id = request.member_id or groups.new_id()
    if request.instance_id is None:
        old = dynamic_member(group, member_id, request)
    else:
        old = static_member(groups, group, member_id, request, records)
    member = _Heartbeat(groups, group, context, request, old, records).decide()
    groups.sessions.touch(request.group_id, member_id, config.session_timeout_ms)
    is_full = request.member_epoch == 0 or (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )
    response = ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=config.heartbeat_interval_ms,
        assignment=_told(member) if is_full or member.assigned != old.assigned else None,
    )
    return CoordinatorResult(records, response)


def _group_of(groups: ConsumerGroups, request: ConsumerGroupHeartbeatRequest, records: list[CoordinatorRecord]) -> ConsumerGroup:
    """The group, a new one for a member that joins. An empty classic group gives way to it."""
    group = groups.find(request.group_id)
    if group is not None:
        return group
    other = groups.registry.find(request.group_id)
    is_joining = request.member_epoch == 0
    if other is None and is_joining:
        return groups.new_group(request.group_id)
    if isinstance(other, ClassicGroup) and is_joining:
        if other.is_empty:
            records += other.tombstones()
            return groups.new_group(request.group_id)
        reason = f"Cannot upgrade classic group {request.group_id} to consumer group because online upgrade is disabled."
    elif other is None:
        reason = f"Consumer group {request.group_id} not found."
    else:
        reason = f"Group {request.group_id} is not a consumer group."
    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, reason)


def _told(member: ConsumerMember) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(indexes)) for topic_id, indexes in member.assigned.items()
        ]
    )


class _Heartbeat:
    """One heartbeat of a member that the group knows, or takes in."""

    __slots__ = ("_context", "_group", "_groups", "_old", "_records", "_request")

    def __init__(
        self,
        groups: ConsumerGroups,
        group: ConsumerGroup,
        context: MemberContext,
        request: ConsumerGroupHeartbeatRequest,
        old: ConsumerMember,
        records: list[CoordinatorRecord],
    ) -> None:
        self._groups = groups
        self._group = group
        self._context = context
        self._request = request
        self._old = old
        self._records = records

    def decide(self) -> ConsumerMember:
        """The member as it is from now on. Adds to the records what that takes."""
        group, groups, old = self._group, self._groups, self._old
        member = self._updated()
        names_changed = False
        if member is not old:
            self._records.append(member_record(group.group_id, member))
            names_changed = member.subscribed_topic_names != old.subscribed_topic_names
        regex_change = RegexChange.NONE
        if member.subscribed_topic_regex or old.subscribed_topic_regex or group.regex_counts:
            regex_change = update_regexes(groups, group, old, member, self._records)
        epoch = group.epoch.get()
        must_raise = names_changed or regex_change is RegexChange.UPDATED_AND_RESOLVED
        if must_raise or group.is_stale:
            epoch = self._raise_epoch(member, must_raise=must_raise)
        assignment_epoch, target = update_target(groups, group, epoch, old, member, self._records)
        has_changed = names_changed or regex_change is not RegexChange.NONE
        return self._reconciled(member, assignment_epoch, target, has_subscription_changed=has_changed)

    def _updated(self) -> ConsumerMember:
        """The member with what the request says; the same object if that is nothing new. HOT."""
        request, old, context = self._request, self._old, self._context
        names = request.subscribed_topic_names
        timeout_ms = request.rebalance_timeout_ms
        if (
            old.client_id == context.client_id
            and old.client_host == context.client_host
            and old.classic is None
            and request.instance_id in (None, old.instance_id)
            and request.rack_id in (None, old.rack_id)
            and timeout_ms in (-1, old.rebalance_timeout_ms)
            and request.server_assignor in (None, old.server_assignor)
            and request.subscribed_topic_regex in (None, old.subscribed_topic_regex)
            and (names is None or old.subscribed_topic_names == frozenset(names))
        ):
            return old
        regex = request.subscribed_topic_regex
        return replace(
            old,
            instance_id=old.instance_id if request.instance_id is None else request.instance_id,
            rack_id=old.rack_id if request.rack_id is None else request.rack_id,
            rebalance_timeout_ms=old.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
            client_id=context.client_id,
            client_host=context.client_host,
            subscribed_topic_names=old.subscribed_topic_names if names is None else frozenset(names),
            subscribed_topic_regex=old.subscribed_topic_regex if regex is None else regex,
            server_assignor=old.server_assignor if request.server_assignor is None else request.server_assignor,
            classic=None,
        )

    def _raise_epoch(self, member: ConsumerMember, *, must_raise: bool) -> int:
        """Look at the topics of the group as it will be. Its epoch, raised if they are others or ``must_raise``."""
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
            groups.reports.info("a group's epoch is raised", group=group.group_id, epoch=epoch, member=member.member_id)
        group.fresh_epoch = epoch
        if group.has_partition_metadata.get():
            self._records.append(partition_metadata_tombstone(group.group_id))
        return epoch

    def _reconciled(
        self, member: ConsumerMember, assignment_epoch: int, target: Partitions, *, has_subscription_changed: bool
    ) -> ConsumerMember:
        group, groups = self._group, self._groups
        if not has_subscription_changed and member.is_reconciled_to(assignment_epoch):
            return member
        names = group.names_of(member)
        # A static member that is back has what its predecessor has, whose records are still to be replayed.
        own = {self._request.member_id, member.member_id, group.static_members.get(member.instance_id or "")}

        def is_held(topic_id: UUID, index: int) -> bool:
            holder = group.holders.get((topic_id, index))
            return holder is not None and holder not in own

        reported = self._request.topic_partitions
        owned = (
            None
            if reported is None
            else {each.topic_id: frozenset(each.partitions) for each in reported if each.topic_id is not None}
        )
        given = Reconciliation(
            target_epoch=assignment_epoch,
            target=target,
            is_held=is_held,
            owned=owned,
            is_subscribed=lambda topic_id: groups.topics.name_of(topic_id) in names,
            has_subscription_changed=has_subscription_changed,
        )
        after = reconcile(member, given)
        if after is not member and after != member:
            self._records.append(assignment_record(group.group_id, after))
            if after.state is MemberState.UNREVOKED_PARTITIONS:
                begin_revocation(groups, group.group_id, after)
            else:
                groups.sessions.end_revocation(group.group_id, after.member_id)
        return after
