"""What the simulations promise whoever looks for the cause of a failure: it is told whole, and a seed is one history."""

import os
import subprocess
import sys

import pytest

from tests.broker_process import REPOSITORY
from tests.campaigns.simulation import groups
from tests.campaigns.simulation.test_groups import begin_no_generation
from tests.campaigns.simulation.test_transactions import leave_out_a_marker
from tests.campaigns.simulation.transactions import histories


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("simulation", "module", "spoil", "asked"),
    [
        (groups, "tests.campaigns.simulation.groups", begin_no_generation, "asks JOIN_GROUP"),
        (histories, "tests.campaigns.simulation.transactions", leave_out_a_marker, "asks PRODUCE"),
    ],
    ids=["groups", "transactions"],
)
def test_a_failure_is_told_with_what_happened_last_and_the_command_that_repeats_it(
    simulation, module, spoil, asked, monkeypatch, capsys
):
    spoil(monkeypatch)

    assert simulation.main(["--first", "3", "--seeds", "1"]) == 1

    told = capsys.readouterr().out
    assert "seed 3 failed at" in told
    assert asked in told
    assert f"python -m {module} --seed 3 --trace" in told
    assert told.endswith("failures 1\n")


@pytest.mark.parametrize(
    "module",
    [
        "tests.campaigns.simulation.consumer_groups",
        "tests.campaigns.simulation.groups",
        "tests.campaigns.simulation.transactions",
    ],
)
def test_one_seed_is_one_history(module):
    def trace(hash_seed):
        command = [sys.executable, "-m", module, "--seed", "7", "--trace"]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=50, cwd=REPOSITORY, env=environment)

    first = trace("1").stdout

    assert first.endswith("seed 7: passed\n")
    assert first == trace("2").stdout
