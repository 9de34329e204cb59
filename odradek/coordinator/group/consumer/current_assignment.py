"""The next step of one member towards its target assignment: a pure function. Kafka's ``CurrentAssignmentBuilder``.

For each topic, with an empty target if the member does not, or no longer, subscribe to it:

    kept        =  assigned  ∩  target
    to revoke   =  assigned  -  kept
    missing     =  target    -  kept
    free        =  missing   -  what another member still has
    unreleased  =  missing   -  free

While the member reports owning a partition to revoke, it stays in its epoch with ``kept``, and is asked to give the others up.
Then it enters the target's epoch with ``kept`` and ``free``, and waits if any partition is unreleased.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import UUID

from odradek.coordinator.group.consumer.member import NOTHING_OWNED, ConsumerMember, OwnedEpochs, Partitions
from odradek.coordinator.group.consumer.states import MemberState, check_transition
from odradek.protocol.errors import ErrorCode, KafkaError


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
