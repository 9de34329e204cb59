"""The campaign's short form: a history that both controllers agree on, and faults that two of odradek's would differ by."""

import pytest

from odradek.controller.metadata.cluster_view import UNASSIGNED
from tests.campaigns.controller_differential.__main__ import compare
from tests.campaigns.controller_differential.history import Difference, History
from tests.campaigns.controller_differential.sides import Ours

STEPS = 20


@pytest.mark.xdist_group("kafka-clusters")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 2], ids=["with-elr", "without-elr"])
async def test_the_controllers_agree(seed, tmp_path):
    history = await compare(tmp_path / "controllers", seed, STEPS, passes_time=False)
    assert len(history.trace) > STEPS


# What one of two controllers decides wrongly, by a question that it answers wrongly.
FAULTS = {
    "fenced-brokers-lead": ("is_active", lambda broker_id: True),
    "nobody-stays-eligible": ("min_isr", lambda topic: 1),
    "any-election-may-be-unclean": ("allows_unclean", lambda topic: True),
    "no-election-may-be-unclean": ("allows_unclean", lambda topic: False),
    "directories-fail-unnoticed": ("is_online", lambda partition, broker_id: True),
    "no-directory-is-known": ("default_directory", lambda broker_id: UNASSIGNED),
    "nobody-leads": ("leads", lambda broker_id: False),
}


class Faulty(Ours):
    def __init__(self, fault):
        super().__init__()
        name, answer = FAULTS[fault]
        setattr(self.cluster.controller.view, name, answer)


async def differ(fault):
    for seed in range(20):
        await History(Ours(), Faulty(fault), seed).run(150)


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_planted_fault_is_found(fault):
    with pytest.raises(Difference):
        await differ(fault)


async def test_two_controllers_without_a_fault_do_not_differ():
    for seed in range(3):
        await History(Ours(), Ours(), seed).run(150)
