"""The step of one member towards its target."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.group.consumer.member import ConsumerMember, IllegalTransition, MemberState, check_transition
from odradek.coordinator.group.consumer.member_step import Reconciliation, reconcile
from odradek.protocol.errors import ErrorCode, KafkaError

T, U = UUID(int=1), UUID(int=2)
STABLE, UNREVOKED, UNRELEASED = MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS


def given_target(epoch=5, *indexes, owned=None, held=(), subscribed=(T, U), changed=False):
    return Reconciliation(
        target_epoch=epoch,
        target={T: frozenset(indexes)} if indexes else {},
        is_held=lambda topic_id, index: (topic_id, index) in {(T, each) for each in held},
        owned=None if owned is None else {T: frozenset(owned)},
        is_subscribed=lambda topic_id: topic_id in subscribed,
        has_subscription_changed=changed,
    )


def member(epoch=4, state=STABLE, assigned=(), revoked=()):
    return ConsumerMember(
        member_id="m",
        member_epoch=epoch,
        previous_member_epoch=3,
        state=state,
        assigned={T: dict.fromkeys(assigned, 4)} if assigned else {},
        pending_revocation={T: dict.fromkeys(revoked, 4)} if revoked else {},
    )


def shape(found):
    return found.state, found.member_epoch, found.previous_member_epoch, dict(found.assigned), dict(found.pending_revocation)


def test_a_member_at_its_target_stays_the_same_object():
    at_target = member(5, assigned=[0])
    assert reconcile(at_target, given_target(5, 0)) is at_target


def test_free_partitions_are_assigned_in_the_epoch_of_the_target():
    found = reconcile(member(assigned=[0]), given_target(5, 0, 1))
    assert shape(found) == (STABLE, 5, 4, {T: {0: 4, 1: 5}}, {})


def test_a_partition_that_another_holds_is_waited_for():
    found = reconcile(member(assigned=[0]), given_target(5, 0, 1, 2, held=[1]))
    assert shape(found) == (UNRELEASED, 5, 4, {T: {0: 4, 2: 5}}, {})


def test_what_is_to_be_revoked_keeps_the_member_in_its_epoch():
    found = reconcile(member(assigned=[0, 1]), given_target(5, 0, 2))
    assert shape(found) == (UNREVOKED, 4, 4, {T: {0: 4}}, {T: {1: 4}})


def test_nothing_is_asked_back_that_the_member_says_it_does_not_own():
    found = reconcile(member(assigned=[0, 1]), given_target(5, 0, owned=[0]))
    assert shape(found) == (STABLE, 5, 4, {T: {0: 4}}, {})


@pytest.mark.parametrize("owned", [None, [0, 1]])
def test_a_member_that_has_not_revoked_stays_the_same_object(owned):
    waiting = member(state=UNREVOKED, assigned=[0], revoked=[1])
    assert reconcile(waiting, given_target(5, 0, 2, owned=owned)) is waiting


def test_a_member_that_has_revoked_comes_to_the_newest_target():
    waiting = member(state=UNREVOKED, assigned=[0], revoked=[1])
    assert shape(reconcile(waiting, given_target(7, 0, 2, owned=[0]))) == (STABLE, 7, 4, {T: {0: 4, 2: 7}}, {})


def test_a_partition_that_was_to_be_revoked_may_come_back():
    waiting = member(state=UNREVOKED, assigned=[0], revoked=[1])
    found = reconcile(waiting, given_target(7, 0, 1, owned=[0], held=[1]))
    assert shape(found) == (STABLE, 7, 4, {T: {0: 4, 1: 7}}, {})


def test_a_topic_without_a_subscription_is_revoked_before_there_is_a_new_target():
    at_target = member(5, assigned=[0, 1])
    found = reconcile(at_target, given_target(5, 0, 1, subscribed=(U,), changed=True))
    assert shape(found) == (UNREVOKED, 5, 5, {}, {T: {0: 4, 1: 4}})
    assert reconcile(at_target, given_target(5, 0, 1, changed=True)) is at_target


def test_a_target_of_a_topic_without_a_subscription_counts_for_nothing():
    assert shape(reconcile(member(), given_target(5, 0, subscribed=(U,)))) == (STABLE, 5, 4, {}, {})


def test_a_member_in_a_state_of_a_newer_kafka_is_fenced_unless_it_owns_nothing():
    unknown = member(state=MemberState.UNKNOWN)
    with pytest.raises(KafkaError) as refusal:
        reconcile(unknown, given_target(5, 0, owned=[0]))
    assert refusal.value.code == ErrorCode.FENCED_MEMBER_EPOCH
    nothing = Reconciliation(target_epoch=5, target={}, is_held=lambda *_: False, owned={}, is_subscribed=lambda _: True)
    assert reconcile(unknown, nothing).state is STABLE


def test_no_state_is_followed_by_unknown():
    with pytest.raises(IllegalTransition):
        check_transition("m", STABLE, MemberState.UNKNOWN)


INDEXES = st.sets(st.integers(0, 5))


@given(
    assigned=INDEXES,
    target=INDEXES,
    held=INDEXES,
    owned=st.none() | INDEXES,
    revoked=INDEXES,
    state=st.sampled_from([STABLE, UNREVOKED, UNRELEASED]),
)
def test_no_partition_is_given_that_another_holds_and_none_is_taken_before_it_is_revoked(
    assigned, target, held, owned, revoked, state
):
    revoked = revoked - assigned if state is UNREVOKED else set()
    state = STABLE if state is UNREVOKED and not revoked else state
    before = member(state=state, assigned=assigned, revoked=revoked)
    after = reconcile(before, given_target(5, *target, owned=owned, held=held - assigned - revoked))
    has = set(after.assigned.get(T, ()))
    assert not has & (held - assigned - revoked)
    if after.member_epoch == before.member_epoch:
        reported = assigned | revoked if owned is None else owned
        assert has <= assigned
        assert set(after.pending_revocation.get(T, ())) & (reported or {0, 1, 2, 3, 4, 5})
    else:
        assert has <= target
        assert after.pending_revocation == {}
        assert (after.state is UNRELEASED) == (has != target)
