"""Faults of brokers, coordinators and the controller that are found soon. The campaign simulate-cluster plants all of them."""

import pytest

from tests.campaigns.cluster_simulation.mutations import MUTATIONS, search
from tests.campaigns.simulation.violation import Violation

MOST_SEEDS = 60
SOON = (
    "truncate_nothing",
    "move_the_high_watermark_by_the_leaders_end",
    "acknowledge_what_is_appended",
    "show_what_is_not_replicated",
    "grow_the_isr_by_whoever_fetches",
    "load_a_coordinator_up_to_the_high_watermark",
    "give_out_a_block_of_producer_ids_twice",
    "write_no_markers_to_other_brokers",
    "drop_the_next_transactions_verification",
    "answer_while_a_transaction_is_being_completed",
    "begin_transactions_for_groups_elsewhere",
    "append_transactions_that_too_few_replicas_get",
)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", SOON)
def test_a_fault_is_found(name):
    _, error = search(name, MOST_SEEDS)

    assert isinstance(error, Violation), repr(error)
    assert error.invariant in MUTATIONS[name].invariants, error
