"""One step of a member of a streams group towards its target: tasks given up, taken, waited for, and changed in their role."""

from collections import defaultdict

import pytest

from odradek.coordinator.group.assignor.streams_interface import MemberTasks
from odradek.coordinator.group.streams.member import NOTHING_OWNED, MemberState, OwnedTasks, StreamsGroupMember
from odradek.coordinator.group.streams.reconciliation import Reconciliation, reconcile
from odradek.protocol.errors import ErrorCode, KafkaError

STABLE, UNREVOKED, UNRELEASED = MemberState.STABLE, MemberState.UNREVOKED_TASKS, MemberState.UNRELEASED_TASKS


def of(*indexes):
    return {"0": frozenset(indexes)} if indexes else {}


def target(active=(), standby=(), warmup=()):
    return MemberTasks(of(*active), of(*standby), of(*warmup))


def owned(active=(), standby=(), warmup=(), since=3):
    """Tasks assigned in epoch ``since``; a dictionary of ``active`` has epochs of its own."""
    epochs = active if isinstance(active, dict) else dict.fromkeys(active, since)
    return OwnedTasks({"0": epochs} if epochs else {}, of(*standby), of(*warmup))


def member(epoch=3, state=STABLE, assigned=NOTHING_OWNED, pending=NOTHING_OWNED):
    return StreamsGroupMember(
        member_id="m", process_id="p", member_epoch=epoch, state=state, assigned=assigned, pending_revocation=pending
    )


def step(of_member, to, *, epoch=4, active=None, standby=None, warmup=None, reports=None):
    """(epoch, state, assigned, to revoke) after a step. ``active`` maps tasks of others to processes, the rest to sets."""
    after = reconcile(
        of_member,
        Reconciliation(
            target_epoch=epoch,
            target=to,
            active_process=lambda task: (active or {}).get(task[1]),
            standby_processes=lambda task: defaultdict(set, standby or {})[task[1]],
            warmup_processes=lambda task: defaultdict(set, warmup or {})[task[1]],
            owned=reports,
        ),
    )
    return after.member_epoch, after.state, after.assigned, after.pending_revocation


def test_a_member_takes_free_tasks_and_keeps_the_epochs_of_those_it_had():
    had = member(assigned=owned({0: 2}))
    assert step(had, target((0, 1))) == (4, STABLE, owned({0: 2, 1: 4}), NOTHING_OWNED)


def test_a_member_gives_up_first_and_enters_the_epoch_once_it_owns_nothing_of_that():
    had = member(assigned=owned((0, 1)))
    asked = step(had, target((1, 2)), reports=target((0, 1)))
    assert asked == (3, UNREVOKED, owned((1,)), owned((0,)))
    waits = member(3, UNREVOKED, owned((1,)), owned((0,)))
    assert step(waits, target((1, 2)), reports=target((0, 1))) == asked
    # A member that does not say what it owns has not given anything up.
    assert step(waits, target((1, 2))) == asked
    assert step(waits, target((1, 2)), reports=target((1,))) == (4, STABLE, owned({1: 3, 2: 4}), NOTHING_OWNED)


def test_a_member_with_nothing_left_to_give_up_needs_no_second_heartbeat():
    assert step(member(assigned=owned((0,))), target(), reports=target()) == (4, STABLE, NOTHING_OWNED, NOTHING_OWNED)


def test_a_task_that_another_process_runs_is_waited_for():
    had = member()
    assert step(had, target((0, 1)), active={1: "q"}) == (4, UNRELEASED, owned((0,), since=4), NOTHING_OWNED)
    waits = member(4, UNRELEASED, owned((0,), since=4))
    assert step(waits, target((0, 1)), active={0: "p"}) == (4, STABLE, owned((0, 1), since=4), NOTHING_OWNED)


@pytest.mark.parametrize("role", ["active", "standby", "warmup"])
def test_a_process_has_a_task_in_one_role_only(role):
    held = {role: {0: "p" if role == "active" else {"p"}}}
    for wanted in (target(active=(0,)), target(standby=(0,)), target(warmup=(0,))):
        assert step(member(), wanted, **held) == (4, UNRELEASED, NOTHING_OWNED, NOTHING_OWNED)
    elsewhere = {role: {0: "q" if role == "active" else {"q"}}}
    assert step(member(), target(standby=(0,)), **elsewhere) == (4, STABLE, owned(standby=(0,)), NOTHING_OWNED)


def test_a_standby_becomes_active_without_being_given_up():
    had = member(assigned=owned(standby=(0,)))
    mine = {"standby": {0: {"p"}}}
    assert step(had, target((0,)), **mine) == (4, STABLE, owned((0,), since=4), NOTHING_OWNED)
    # As long as another process is active, the standby stays.
    assert step(had, target((0,)), active={0: "q"}, **mine) == (4, UNRELEASED, owned(standby=(0,)), NOTHING_OWNED)
    # So it does while other tasks are to be given up.
    busy = member(assigned=owned((1,), standby=(0,)))
    assert step(busy, target((0,)), active={1: "p"}, **mine) == (3, UNREVOKED, owned(standby=(0,)), owned((1,)))


def test_an_active_task_becomes_a_standby_that_is_kept_while_the_active_one_is_given_up():
    had = member(assigned=owned((0,)))
    assert step(had, target(standby=(0,)), active={0: "p"}) == (3, UNREVOKED, owned(standby=(0,)), owned((0,)))


def test_standby_and_warmup_change_at_once():
    had = member(assigned=owned(standby=(0,), warmup=(1,)))
    mine = {"standby": {0: {"p"}}, "warmup": {1: {"p"}}}
    assert step(had, target(standby=(1,), warmup=(0,)), **mine) == (4, STABLE, owned(standby=(1,), warmup=(0,)), NOTHING_OWNED)


def test_a_member_in_a_state_of_a_newer_kafka_owns_nothing_or_is_fenced():
    unknown = member(3, MemberState.UNKNOWN)
    assert step(unknown, target((0,)), reports=target()) == (4, STABLE, owned((0,), since=4), NOTHING_OWNED)
    for reports in (None, target((0,))):
        with pytest.raises(KafkaError) as fenced:
            step(unknown, target((0,)), reports=reports)
        assert fenced.value.code is ErrorCode.FENCED_MEMBER_EPOCH
