from pathlib import Path

import pytest

from tests.coordinator.scenario_files import check

from .scenario import Scenario

_SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", _SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_gives_what_its_file_says(path, request):
    check(path, Scenario().run, request.config)


def test_there_are_scenarios():
    assert len(_SCENARIOS) > 10
