"""Ten histories of clusters, and that a seed is one history. The campaign simulate-cluster runs more."""

import os
import subprocess
import sys

import pytest

from tests.broker_process import REPOSITORY
from tests.campaigns.cluster_simulation.histories import SIMULATION
from tests.campaigns.simulation import runner

SEEDS_A_TEST = 5


@pytest.mark.parametrize("first", range(0, 10, SEEDS_A_TEST))
def test_no_history_breaks_an_invariant(first):
    failures, counts = runner.run_many(SIMULATION, first, SEEDS_A_TEST)

    assert not failures, "\n".join(failures)
    assert counts["records acknowledged"] > 20


def test_one_seed_is_one_history():
    def trace(hash_seed):
        command = [sys.executable, "-m", "tests.campaigns.cluster_simulation", "--seed", "7", "--trace"]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=50, cwd=REPOSITORY, env=environment)

    first = trace("1").stdout

    assert first.endswith("seed 7: passed\n")
    assert first == trace("2").stdout
