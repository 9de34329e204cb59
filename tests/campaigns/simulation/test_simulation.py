"""Some histories of each kind, and faults of the product that they find soon. The campaigns run more, and plant all faults."""

import os
import subprocess
import sys
from typing import NamedTuple

import pytest

from tests.broker_process import REPOSITORY
from tests.campaigns import planted
from tests.campaigns.cluster_simulation.histories import SIMULATION as CLUSTERS
from tests.campaigns.cluster_simulation.mutations import FAULTS as OF_CLUSTERS
from tests.campaigns.planted import Faults
from tests.campaigns.simulation import runner
from tests.campaigns.simulation.groups import histories as groups
from tests.campaigns.simulation.groups.mutations import CLASSIC, CONSUMER
from tests.campaigns.simulation.shares import histories as shares
from tests.campaigns.simulation.shares.mutations import FAULTS as OF_SHARES
from tests.campaigns.simulation.streams import histories as streams
from tests.campaigns.simulation.streams.mutations import FAULTS as OF_STREAMS
from tests.campaigns.simulation.transactions import histories as transactions
from tests.campaigns.simulation.transactions.mutations import FAULTS as OF_TRANSACTIONS


class Kind(NamedTuple):
    """``counted`` happens in each part of ``part`` seeds more often than ``more_than``."""

    simulation: runner.Simulation
    faults: Faults
    seeds: int
    part: int
    counted: str
    more_than: int


KINDS = {
    "classic groups": Kind(groups.CLASSIC, CLASSIC, 100, 50, "SYNC_GROUP NONE", 50),
    "consumer groups": Kind(groups.CONSUMER, CONSUMER, 80, 40, "CONSUMER_GROUP_HEARTBEAT NONE", 40),
    "streams groups": Kind(streams.SIMULATION, OF_STREAMS, 60, 30, "STREAMS_GROUP_HEARTBEAT NONE", 60),
    "transactions": Kind(transactions.SIMULATION, OF_TRANSACTIONS, 50, 25, "told commit", 25),
    "share groups": Kind(shares.SIMULATION, OF_SHARES, 12, 6, "records accepted", 100),
    "clusters": Kind(CLUSTERS, OF_CLUSTERS, 10, 5, "records acknowledged", 20),
}


@pytest.mark.parametrize(
    ("kind", "first"), [(name, first) for name, kind in KINDS.items() for first in range(0, kind.seeds, kind.part)]
)
def test_no_history_breaks_an_invariant(kind, first):
    simulation, _, _, part, counted, more_than = KINDS[kind]
    failures, counts = runner.run_many(simulation, first, part)

    assert not failures, "\n".join(failures)
    assert counts[counted] > more_than


@pytest.mark.interpreted
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("kind", "name"), [(name, fault) for name, kind in KINDS.items() for fault in kind.faults.soon])
def test_a_planted_fault_is_found(kind, name):
    faults = KINDS[kind].faults
    _, error = faults.search(name, faults.most)

    assert faults.is_found_by(name, error), repr(error)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("kind", "fault", "asked"),
    [
        ("classic groups", "begin_no_generation", "asks JOIN_GROUP"),
        ("transactions", "leave_out_a_marker", "asks PRODUCE"),
    ],
)
def test_a_failure_is_told_with_what_happened_last_and_the_command_that_repeats_it(kind, fault, asked, capsys):
    with KINDS[kind].faults.planted(fault):
        assert runner.main(KINDS[kind].simulation, "", ["--first", "3", "--seeds", "1"]) == 1

    told = capsys.readouterr().out
    assert "seed 3 failed at" in told
    assert asked in told
    assert f"python -m {KINDS[kind].simulation.module} --seed 3 --trace" in told
    assert told.endswith("failures 1\n")


def test_no_fault_is_said_to_be_missed_where_none_can_be_planted(monkeypatch, capsys):
    monkeypatch.setattr(planted, "is_compiled", lambda: True)

    assert planted.main(streams.SIMULATION, OF_STREAMS, "", ["--seeds", "1", "--mutations", "1"]) == 0

    assert capsys.readouterr().out.endswith("no fault was planted, as odradek is compiled here\n")


@pytest.mark.parametrize("kind", KINDS)
def test_one_seed_is_one_history(kind):
    def trace(hash_seed):
        command = [sys.executable, "-m", KINDS[kind].simulation.module, "--seed", "7", "--trace"]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=50, cwd=REPOSITORY, env=environment)

    first = trace("1").stdout

    assert first.endswith("seed 7: passed\n")
    assert first == trace("2").stdout
