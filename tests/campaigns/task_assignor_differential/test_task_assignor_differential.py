"""The campaign's short form: histories in which both assign the same, and faults by which odradek would differ."""

import pytest

from tests.campaigns.task_assignor_differential.comparison import compare, differences
from tests.campaigns.task_assignor_differential.faults import FAULTS

SEEDS = range(1, 61)

pytestmark = [
    pytest.mark.xdist_group("kafka-tools"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    return compare(SEEDS, tmp_path_factory.mktemp("assignors"))


def test_both_assign_the_same(compared):
    questions, answers = compared
    assert len(questions) > 10 * len(SEEDS)
    assert differences(questions, answers) == []


@pytest.mark.interpreted
def test_each_planted_fault_is_found(compared):
    missed = set(FAULTS)
    for fault in FAULTS:
        with FAULTS.planted(fault):
            if differences(*compared):
                missed.remove(fault)
    assert missed == set()
