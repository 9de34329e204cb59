"""Upgrade: a classic group becomes a consumer group when a member of the consumer protocol joins it.

    group epoch, assignment epoch, member epochs    the generation
    target assignments                              the leader's last assignment
    current assignments                             the target, and partitions owned at the join, unless another member has them
    subscriptions                                   taken from the members' protocol in use

In a stable group, members have their targets. While a cooperative group rebalances, a member may own more than its assignment: it
has not heard of the new one, or the previous generation had none. Kafka reassigns such partitions at once, and two members read
them until the former owner has joined again.

The joining member raises the group's epoch, which begins a rebalance. So the classic group's held requests are answered
REBALANCE_IN_PROGRESS, and their members join again.

Source: ``GroupMetadataManager.convertToConsumerGroup``, ``ConsumerGroup.fromClassicGroup`` of Apache Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from odradek.coordinator.group.classic.decision import join_error, sync_error
from odradek.coordinator.group.classic.rebalance import stop_waiting
from odradek.coordinator.group.consumer.member import ConsumerMember
from odradek.coordinator.group.consumer.records import (
    assignment_record,
    epoch_record,
    member_record,
    target_metadata_record,
    target_record,
)
from odradek.coordinator.group.consumer.states import MemberState
from odradek.coordinator.group.migration.assignments import with_ids
from odradek.protocol.coordinator_records.consumer_groups import ClassicMemberMetadata, ClassicProtocol
from odradek.protocol.coordinator_records.consumer_protocol import assigned_partitions, assigned_user_data, read_subscription
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from odradek.coordinator.group.classic.group import ClassicGroup
    from odradek.coordinator.group.classic.member import Member
    from odradek.coordinator.group.consumer.group import ConsumerGroup
    from odradek.coordinator.group.consumer.groups import ConsumerGroups
    from odradek.coordinator.runtime.record import CoordinatorRecord
    from odradek.timing.reply import Reply

# No assignment was computed for the consumer group yet, so the next one is never too early.
_NEVER_MS: Final = 0


def upgraded(groups: ConsumerGroups, classic: ClassicGroup, records: list[CoordinatorRecord]) -> ConsumerGroup:
    """Return a temporary consumer group made from ``classic``, to decide on before the records are replayed.

    Adds to ``records`` only. Raises KafkaError(GROUP_ID_NOT_FOUND) if the group cannot be converted.
    """
    _check(groups, classic)
    group_id = classic.group_id
    try:
        assigned = {member_id: _with_ids(groups, member.assignment) for member_id, member in classic.members.items()}
        held = {(topic_id, index) for each in assigned.values() for topic_id, indexes in each.items() for index in indexes}
        members = [
            _converted(groups, classic, member, assigned[member_id], held) for member_id, member in classic.members.items()
        ]
    except MalformedMessage:
        raise _refusal(group_id, "the subscription or assignment of a member is malformed") from None
    names = frozenset[str]().union(*(member.subscribed_topic_names for member in members))
    generation = classic.generation
    made = [
        *(member_record(group_id, member) for member in members),
        epoch_record(group_id, generation, groups.metadata_hash(names)),
        *(target_record(group_id, member_id, partitions) for member_id, partitions in assigned.items()),
        target_metadata_record(group_id, generation, _NEVER_MS),
        *(assignment_record(group_id, member) for member in members),
    ]
    records += classic.tombstones()
    records += made
    return groups.preview(group_id, made)


def lags_behind_topics(groups: ConsumerGroups, group: ConsumerGroup) -> bool:
    """Return whether the members' partitions differ from those of their topics, which changed after the assignment.

    The leader would have noticed, but it no longer leads. In Kafka, such partitions stay unread until the topics change again.
    """
    found = (groups.topics.find(name) for name in group.name_counts)
    wanted = {(topic.topic_id, index) for topic in found if topic is not None for index in range(topic.partition_count)}
    return wanted != set(group.holders)


def let_go(groups: ConsumerGroups, classic: ClassicGroup) -> list[tuple[Reply[Any], object]]:
    """Move the members' sessions to the consumer group, and return the answers to held requests.

    If the records cannot be appended, the answers fail too, and the group is again as stored.
    """
    responses: list[tuple[Reply[Any], object]] = []
    for member in classic.members.values():
        groups.sessions.forget_timeouts(classic.group_id, member.member_id)
        groups.sessions.touch(classic.group_id, member.member_id, member.session_timeout_ms)
        groups.classic.sessions.end(classic, member.member_id)
        join = classic.release_join(member)
        if join is not None:
            responses.append((join, join_error(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)))
        if member.waiting_sync is not None:
            responses.append((member.waiting_sync, sync_error(ErrorCode.REBALANCE_IN_PROGRESS)))
            member.waiting_sync = None
    stop_waiting(groups.classic, classic)
    groups.reports.info(
        "a classic group becomes a consumer group",
        group=classic.group_id,
        generation=classic.generation,
        members=len(classic.members),
    )
    return responses


def _check(groups: ConsumerGroups, classic: ClassicGroup) -> None:
    config = groups.config_of(classic.group_id)
    if not config.migration_policy.permits_upgrade:
        raise _refusal(classic.group_id, "group.consumer.migration.policy does not allow the upgrade")
    if not classic.is_of_consumers:
        raise _refusal(classic.group_id, "its members are not consumers")
    if len(classic.members) > config.max_size:
        raise _refusal(classic.group_id, "it has more members than group.consumer.max.size")


def _refusal(group_id: str, reason: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id} stays a classic group: {reason}")


def _converted(
    groups: ConsumerGroups,
    classic: ClassicGroup,
    member: Member,
    assigned: Mapping[UUID, frozenset[int]],
    held: set[tuple[UUID, int]],
) -> ConsumerMember:
    """Convert a member. Raises MalformedMessage; KafkaError if a custom assignor gave it more than partitions."""
    subscription = read_subscription(_metadata(classic, member))
    # librdkafka's sticky assignor returns each member the user data of its own subscription. Nothing is lost with it.
    if assigned_user_data(member.assignment) not in {b"", subscription.user_data}:
        raise _refusal(
            classic.group_id, "its leader's assignor sends user data with the assignments, and a consumer group cannot keep it"
        )
    owned = {topic_id: dict.fromkeys(indexes, classic.generation) for topic_id, indexes in assigned.items()}
    for topic_id, indexes in with_ids(groups.topics, subscription.owned).items():
        for index in indexes:
            if (topic_id, index) not in held:
                held.add((topic_id, index))
                owned.setdefault(topic_id, {})[index] = classic.generation
    return ConsumerMember(
        member_id=member.member_id,
        member_epoch=classic.generation,
        previous_member_epoch=classic.generation,
        state=MemberState.STABLE,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=frozenset(subscription.topics),
        assigned=owned,
        classic=ClassicMemberMetadata(member.session_timeout_ms, tuple(ClassicProtocol(*each) for each in member.protocols)),
    )


def _metadata(classic: ClassicGroup, member: Member) -> bytes:
    """Return the member's metadata for the group's protocol. A first rebalance has no protocol yet; Kafka fails on that."""
    protocols = dict(reversed(member.protocols))
    _, first = member.protocols[0]
    return protocols.get(classic.protocol or "", first)


def _with_ids(groups: ConsumerGroups, assignment: bytes) -> dict[UUID, frozenset[int]]:
    return with_ids(groups.topics, assigned_partitions(assignment))
