"""A hundred histories of groups, and that the simulation would notice. The campaign simulate runs more."""

import pytest

from odradek.coordinator.group.classic import group as classic_group
from odradek.coordinator.group.classic import heartbeat, rebalance, sync
from odradek.coordinator.group.classic.sessions import Sessions
from odradek.coordinator.group.registry import GroupRegistry
from odradek.coordinator.runtime.answers import Answers
from odradek.coordinator.runtime.hosted_shard import HostedShard
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.coordinator.runtime.timeline import SnapshotRegistry
from odradek.protocol.coordinator_records import MemberMetadata
from tests.campaigns.simulation import groups, runner
from tests.campaigns.simulation.violation import Violation

SEEDS_A_TEST = 50
# What becomes of a failure that nobody is told of depends on who waited.
_SIGNS_OF_SILENCE = {
    "groups come to rest",
    "nobody waits for ever",
    "no deadline is left of who is gone",
    "the log replayed gives the live state",
}


def begin_no_generation(monkeypatch):
    begin = classic_group.ClassicGroup.begin_generation

    def begin_generation(group, now_ms):
        generation = group.generation
        begin(group, now_ms)
        group.generation = generation

    monkeypatch.setattr(classic_group.ClassicGroup, "begin_generation", begin_generation)


def keep_sessions_of_who_left(monkeypatch):
    monkeypatch.setattr(Sessions, "end", lambda *_: None)


def keep_waiting_syncs(monkeypatch):
    monkeypatch.setattr(sync, "reset_assignments", lambda *_: None)
    monkeypatch.setattr(rebalance, "reset_assignments", lambda *_: None)


def write_no_assignment(monkeypatch):
    monkeypatch.setattr(
        "odradek.coordinator.group.classic.stored.MemberMetadata", lambda *fields: MemberMetadata(*fields[:-1], b"")
    )


def never_roll_back(monkeypatch):
    monkeypatch.setattr(SnapshotRegistry, "roll_back", lambda *_: None)


def never_tell_of_failure(monkeypatch):
    monkeypatch.setattr(
        "odradek.coordinator.group.classic.decision.CoordinatorResult",
        lambda records, response, on_failure=None, **parts: CoordinatorResult(records, response, **parts),
    )


def tell_of_failures_as_of_success(monkeypatch):
    def complete(answers, events, error):
        for event in events[::-1]:
            if event.result.on_failure is not None:
                event.result.on_failure(error)
        for event in events:
            answers.give(event.result.responses)
            answers.give([(event.reply, error)])

    monkeypatch.setattr(Answers, "fail", complete)


def hide_rebalances(monkeypatch):
    monkeypatch.setattr(heartbeat, "_REBALANCING", heartbeat._ALIVE)


def wait_for_joins_without_end(monkeypatch):
    monkeypatch.setattr(rebalance, "_wait_for_joins", lambda *_, **__: None)


def answer_before_the_high_watermark(monkeypatch):
    flush = HostedShard.flush

    def flush_and_answer(hosted):
        error = flush(hosted)
        hosted._answers.commit(hosted._deferred.take_all())
        hosted._answers.deliver()
        return error

    monkeypatch.setattr(HostedShard, "flush", flush_and_answer)


def show_groups_that_are_not_written(monkeypatch):
    monkeypatch.setattr(GroupRegistry, "find_at", lambda groups, group_id, _: groups.find(group_id))


def list_no_empty_groups(monkeypatch):
    groups_at = GroupRegistry.groups_at
    monkeypatch.setattr(GroupRegistry, "groups_at", lambda *arguments: (each for each in groups_at(*arguments) if each.members))


@pytest.mark.parametrize("first", range(0, 100, SEEDS_A_TEST))
def test_no_history_breaks_an_invariant(first):
    failures, _ = runner.run_many(groups.SIMULATION, first, SEEDS_A_TEST)

    assert not failures, "\n".join(failures)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("spoil", "invariants"),
    [
        (begin_no_generation, {"one assignment a generation", "generations only grow", "one leader a generation"}),
        (keep_sessions_of_who_left, {"no deadline is left of who is gone"}),
        (keep_waiting_syncs, {"nobody waits for ever"}),
        (write_no_assignment, {"members of a generation hold parts of one assignment"}),
        (never_roll_back, {"the log replayed gives the live state"}),
        (never_tell_of_failure, _SIGNS_OF_SILENCE),
        (tell_of_failures_as_of_success, {"who is told is told by a coordinator"}),
        (hide_rebalances, {"members of the generation are served, and no others"}),
        (wait_for_joins_without_end, {"each wait has a deadline, and no other"}),
        (show_groups_that_are_not_written, {"groups are shown as they are"}),
        (list_no_empty_groups, {"groups are shown as they are"}),
        (answer_before_the_high_watermark, {"members of a generation hold parts of one assignment"}),
    ],
)
def test_a_fault_of_the_coordinator_is_found(spoil, invariants, monkeypatch):
    spoil(monkeypatch)

    # That a failure is told as a success is rare: the first such history is not far behind this one.
    first = 300 if spoil is tell_of_failures_as_of_success else 0
    errors = (groups.run(seed)[1] for seed in range(first, first + 300))
    found = next(error for error in errors if error is not None)

    assert isinstance(found, Violation), repr(found)
    assert found.invariant in invariants, found
