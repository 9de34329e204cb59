"""Some histories of groups of the consumer protocol, and faults that they find soon. The campaign has more of both."""

import pytest

from tests.campaigns.simulation import runner
from tests.campaigns.simulation.consumer_groups.histories import SIMULATION
from tests.campaigns.simulation.consumer_groups.mutations import MUTATIONS, search
from tests.campaigns.simulation.violation import Violation

SEEDS_A_TEST = 40
MOST_SEEDS = 40
SOON = (
    "give_out_what_another_has",
    "take_silence_about_partitions_for_a_release",
    "write_no_step_of_a_member",
    "tell_an_assignment_once",
    "leave_the_targets_of_others",
    "take_commits_of_any_epoch",
    "take_commits_of_who_is_no_member",
    "fence_the_present_epoch",
    "raise_no_epoch_when_a_member_goes",
    "delete_the_group_with_a_static_member",
    "begin_a_converted_group_at_the_first_epoch",
    "begin_no_sessions_with_a_load",
    "wait_for_revocations_without_end",
    "keep_members_that_are_silent",
    "miss_the_topics_made_during_a_load",
    "upgrade_without_looking_at_topics",
    "forget_what_is_to_be_revoked_in_a_load",
    "never_roll_back",
    "answer_before_the_high_watermark",
    "convert_without_what_members_have",
    "have_no_classic_member_join_again",
    "keep_a_static_members_former_id",
    "downgrade_to_an_older_generation",
)


@pytest.mark.parametrize("first", range(0, 80, SEEDS_A_TEST))
def test_no_history_breaks_an_invariant(first):
    failures, _ = runner.run_many(SIMULATION, first, SEEDS_A_TEST)

    assert not failures, "\n".join(failures)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", SOON)
def test_a_fault_of_the_coordinator_is_found(name):
    _, error = search(name, MOST_SEEDS)

    assert isinstance(error, Violation), repr(error)
    assert error.invariant in MUTATIONS[name].invariants, error
